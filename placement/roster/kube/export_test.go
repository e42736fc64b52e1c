// SPDX-License-Identifier: Apache-2.0

package kube

import "k8s.io/client-go/rest"

// Track makes a client's connections end when closeAll is called, for the clients of tests.
func Track(client *rest.Config) (closeAll func()) { return track(client).close }
