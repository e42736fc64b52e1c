// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzNew makes rings of any IDs, split at zero bytes, under any Config.
func FuzzNew(f *testing.F) {
	f.Add("gw-1\x00gw-11\x00gw-1", int16(31), 1.02)
	f.Fuzz(func(t *testing.T, data string, slots int16, load float64) {
		var ids []GatewayID
		for id := range strings.SplitSeq(data, "\x00") {
			ids = append(ids, GatewayID(id))
		}
		cfg := Config{Slots: int(slots) % 512, Load: load}
		r, err := New(cfg, ids...)
		if cfg.Validate() != nil || slices.Contains(ids, "") {
			require.Error(t, err)
			require.Nil(t, r)
			return
		}
		require.NoError(t, err)
		requireSound(t, r)

		slices.Reverse(ids)
		again, err := New(cfg, append(ids, ids[0])...)
		require.NoError(t, err)
		require.Equal(t, r.Fingerprint(), again.Fingerprint())

		rest := slices.DeleteFunc(slices.Clone(ids), func(id GatewayID) bool { return id == ids[0] })
		want, err := New(cfg, rest...)
		require.NoError(t, err)
		require.Equal(t, want.Fingerprint(), r.Without(ids[0]).Fingerprint())
	})
}
