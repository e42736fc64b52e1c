// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatsCountWhatIsCarried(t *testing.T) {
	all := fleet(t, 2)
	a, b := all[0], all[1]
	before, heard := a.Mesh.Stats(), b.Mesh.Stats()
	a.attach(t, 100)
	eventually(t, func() bool { return b.sees(a.ID()).Attached == 100 }, "b sees whom a serves")

	after := a.Mesh.Stats()
	require.Greater(t, after.MessagesSent, before.MessagesSent)
	require.Greater(t, after.Dials, before.Dials)
	require.Greater(t, after.StreamBytesSent, before.StreamBytesSent+100*uint64(len("m-0")))
	require.Greater(t, b.Mesh.Stats().MessagesReceived, heard.MessagesReceived)
	require.Greater(t, b.Mesh.Stats().StreamBytesReceived, heard.StreamBytesReceived+100*uint64(len("m-0")))
	eventually(t, func() bool {
		now := a.Mesh.Stats()
		return now.PacketsSent > 0 && now.PacketBytesSent > now.PacketsSent
	}, "probes are counted")
}
