// SPDX-License-Identifier: Apache-2.0

// Package evenringpb is the protobuf form of evenring's words on the wire. It
// is generated; [github.com/evenring/evenring/redirect/redirectgrpc] speaks it.
package evenringpb

//go:generate ../generate.sh
