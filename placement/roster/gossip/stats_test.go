// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"testing"
)

func TestStatsCountWhatIsCarried(t *testing.T) {
	all := fleet(t, 2)
	a, b := all[0], all[1]
	before, heard := a.Mesh.Stats(), b.Mesh.Stats()
	a.attach(t, 100)
	eventually(t, func() bool { return b.sees(a.ID()).Attached == 100 }, "b sees whom a serves")

	// Counts travel faster than names, and a frame is counted once it has been written.
	const names = 100 * uint64(len("m-0"))
	eventually(t, func() bool {
		now := a.Mesh.Stats()
		return now.MessagesSent > before.MessagesSent && now.Dials > before.Dials && now.StreamBytesSent > before.StreamBytesSent+names
	}, "what a sends is counted")
	eventually(t, func() bool {
		now := b.Mesh.Stats()
		return now.MessagesReceived > heard.MessagesReceived && now.StreamBytesReceived > heard.StreamBytesReceived+names
	}, "what b hears is counted")
	eventually(t, func() bool {
		now := a.Mesh.Stats()
		return now.PacketsSent > 0 && now.PacketBytesSent > now.PacketsSent
	}, "probes are counted")
}
