// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/ring"
)

func keyOf(b byte, size int) []byte { return bytes.Repeat([]byte{b}, size) }

// keyed changes a gateway's keys.
func keyed(key []byte, accept ...[]byte) func(*gossip.Config) {
	return func(c *gossip.Config) { c.Key, c.AcceptKeys = key, accept }
}

func (p *process) failed() error {
	var last error
	for _, ev := range p.heard() {
		if f, ok := ev.(roster.DiscoveryFailed); ok {
			last = f.Err
		}
	}
	return last
}

// lostAny reports whether the mesh has lost somebody, be it for a moment.
func (p *process) lostAny() bool {
	return p.saw(func(ev roster.Event) bool {
		switch ev.(type) {
		case roster.LinkLost, roster.DiscoveryFailed:
			return true
		}
		return false
	})
}

func TestOtherKeyOrLabelIsRefused(t *testing.T) {
	t.Parallel()
	const byKey, byLabel = "no installed keys could decrypt the message", "discarding stream with unacceptable label"
	for _, row := range []struct {
		name      string
		of, other func(*gossip.Config)
		is        error
		says      string // the one that is turned away
		logs      string // the one that turns it away
	}{
		{"other key", keyed(keyOf(1, 32)), keyed(keyOf(2, 32)), gossip.ErrKey, "Config.AcceptKeys are others there", byKey},
		{"a key of another size", keyed(keyOf(1, 32)), keyed(keyOf(1, 16)), gossip.ErrKey, "Config.AcceptKeys are others there", byKey},
		{"no key", keyed(keyOf(1, 32)), nil, gossip.ErrKey, "Config.Key is set there, and not here", "remote state is not encrypted"},
		{"a key without need", nil, keyed(keyOf(1, 32)), gossip.ErrKey, "Config.Key is set here, and not there", "encryption is not configured"},
		{"other label", labelled("fleet"), labelled("another"), gossip.ErrAlone, "Config.Label", byLabel},
		{"no label", labelled("fleet"), nil, gossip.ErrAlone, "Config.Label", byLabel},
		{"a label without need", nil, labelled("another"), gossip.ErrAlone, "Config.Label", byLabel},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			log := newLogs()
			first := start(t, newGateway(t, "gw-0"), func(c *gossip.Config) {
				c.Logger = log.logger
				if row.of != nil {
					row.of(c)
				}
			})
			second := start(t, newGateway(t, "gw-1"), row.of, first.Mesh.Addr())
			waitPeers(t, second)
			stranger := start(t, newGateway(t, "gw-9"), row.other, first.Mesh.Addr())
			eventually(t, func() bool {
				err := stranger.failed()
				return says(err, row.says, first.Mesh.Addr()) && errors.Is(err, row.is) && errors.Is(err, gossip.ErrAlone)
			}, "it is turned away, and told why")
			eventually(t, func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				err := stranger.Mesh.WaitPeers(ctx)
				return says(err, row.says) && errors.Is(err, row.is) && errors.Is(err, gossip.ErrAlone)
			}, "whoever waits is told as well")
			eventually(t, func() bool { return strings.Contains(log.String(), row.logs) }, "and it is logged why")
			require.Len(t, stranger.Gateways(), 1)
			for _, p := range []*process{first, second} {
				eventually(t, func() bool { return len(p.Gateways()) == 2 }, "the fleet is as it was")
				require.False(t, p.sees("gw-9").Known)
			}
		})
	}
}

func labelled(label string) func(*gossip.Config) {
	return func(c *gossip.Config) { c.Label = label }
}

// agree waits until everybody has heard of a supervisor that attaches now.
func agree(t *testing.T, all []*process) {
	t.Helper()
	for _, p := range all {
		before := p.sees(p.ID()).Attached
		p.attach(t, 1)
		for _, other := range all {
			eventually(t, func() bool { return other.sees(p.ID()).Attached == before+1 },
				fmt.Sprintf("%s hears %s", other.ID(), p.ID()))
		}
	}
}

func TestKeysChangeWhileTheFleetRuns(t *testing.T) {
	t.Parallel()
	old, fresh := keyOf(1, 32), keyOf(2, 16)
	first := func(c *gossip.Config) { seldom(c); keyed(old)(c) }
	var all []*process
	var seeds []string
	for i := range 3 {
		all = append(all, start(t, newGateway(t, ring.GatewayID(fmt.Sprintf("gw-%d", i))), first, seeds...))
		seeds = []string{all[0].Mesh.Addr()}
	}
	agree(t, all)
	for _, step := range [][][]byte{{old, fresh}, {fresh, old}, {fresh}} {
		for _, p := range all {
			require.NoError(t, p.Mesh.SetKeys(step[0], step[1:]...))
			agree(t, all)
		}
	}
	for _, p := range all {
		require.False(t, p.lostAny(), "%s: %v", p.ID(), p.heard())
	}

	late := start(t, newGateway(t, "gw-8"), keyed(old), all[0].Mesh.Addr())
	eventually(t, func() bool { return errors.Is(late.failed(), gossip.ErrKey) }, "the old key is worth nothing")
	late = start(t, newGateway(t, "gw-9"), keyed(fresh), all[0].Mesh.Addr())
	waitPeers(t, late)
	require.Len(t, late.Gateways(), 4)
}

// Restarting gateways one at a time with other keys does it as well.
func TestKeysChangeByRestarts(t *testing.T) {
	t.Parallel()
	old, fresh := keyOf(1, 32), keyOf(2, 32)
	var all []*process
	for i := range 3 {
		var seeds []string
		for _, p := range all {
			seeds = append(seeds, p.Mesh.Addr())
		}
		all = append(all, start(t, newGateway(t, ring.GatewayID(fmt.Sprintf("gw-%d", i))), keyed(old), seeds...))
		waitPeers(t, all[i])
	}
	agree(t, all)
	for step, keys := range [][][]byte{{old, fresh}, {fresh, old}, {fresh}} {
		for i, p := range all {
			require.NoError(t, p.Mesh.Leave(patient))
			p.stop()
			var seeds []string
			for _, other := range all {
				seeds = append(seeds, other.Mesh.Addr()) // one is its own, from before
			}
			all[i] = start(t, newGateway(t, p.ID()), keyed(keys[0], keys[1:]...), seeds...)
			waitPeers(t, all[i])
			eventually(t, func() bool { return len(all[i].Gateways()) == 3 }, fmt.Sprintf("step %d, %s", step, p.ID()))
			agree(t, all)
		}
	}
}

func TestSetKeysRefuses(t *testing.T) {
	t.Parallel()
	p := start(t, newGateway(t, "gw-0"), keyed(keyOf(1, 32)))
	require.ErrorContains(t, p.Mesh.SetKeys(nil), "Key has 0 bytes")
	err := p.Mesh.SetKeys(keyOf(1, 15), keyOf(2, 16), keyOf(3, 17))
	require.ErrorContains(t, err, "Key has 15 bytes")
	require.ErrorContains(t, err, "AcceptKeys[1] has 17 bytes")
	require.NoError(t, p.Mesh.SetKeys(keyOf(1, 32), keyOf(1, 32)))

	other := start(t, newGateway(t, "gw-1"), keyed(keyOf(1, 32)), p.Mesh.Addr())
	waitPeers(t, other)

	open := start(t, newGateway(t, "gw-2"), nil)
	require.ErrorIs(t, open.Mesh.SetKeys(keyOf(1, 32)), gossip.ErrKey)
}
