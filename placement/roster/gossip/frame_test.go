// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	for _, id := range []identity{
		{"gw-0", 1},
		{ring.GatewayID(strings.Repeat("g", maxGatewayID)), placement.Incarnation(^uint64(0))},
	} {
		got, err := parseIdentity(id.append(nil))
		require.NoError(t, err)
		require.Equal(t, id, got)
		require.LessOrEqual(t, len(id.append(nil)), 512, "memberlist takes no longer meta data")
	}
	require.NotEqual(t, identity{"gw#1", 2}.name(), identity{"gw", 12}.name())
	for _, b := range [][]byte{
		nil,
		{identityVersion + 1, 1, 'g'},
		{identityVersion},
		{identityVersion, 0, 'g'},
		{identityVersion, 1},
		append([]byte{identityVersion, 1}, strings.Repeat("g", maxGatewayID+1)...),
	} {
		_, err := parseIdentity(b)
		require.Error(t, err, "%q", b)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(appendMessage(appendMessage(nil, []byte("one")), nil))
	f.Add([]byte{5, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, content []byte) {
		var got [][]byte
		err := eachMessage(content, func(message []byte) { got = append(got, message) })
		var again []byte
		for _, message := range got {
			again = appendMessage(again, message)
		}
		var second [][]byte
		require.NoError(t, eachMessage(again, func(message []byte) { second = append(second, message) }))
		require.Equal(t, got, second)
		if err == nil {
			require.LessOrEqual(t, len(again), len(content))
		}
		if id, err := parseIdentity(content); err == nil {
			same, err := parseIdentity(id.append(nil))
			require.NoError(t, err)
			require.Equal(t, id, same)
		}
	})
}
