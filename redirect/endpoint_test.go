// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
)

func TestCheckEndpoint(t *testing.T) {
	for _, good := range []string{"gw-0.example.com:7000", "10.0.0.1:443", "[::1]:443"} {
		require.NoError(t, redirect.CheckEndpoint(good), good)
	}
	for _, bad := range []string{"", "gw", "ws://gw:1", "dns:///gw:1", "unix:/gw", "gw:1/path", "user@gw:1", "::1:443", "[::1%eth0]:1"} {
		require.Error(t, redirect.CheckEndpoint(bad), bad)
	}
}
