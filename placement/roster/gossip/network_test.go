// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// Streams to a gateway break for a moment, packets do not: no probe has
// noticed anything. It is suspect at once, and trusted again by itself.
func TestFalseSuspicionHeals(t *testing.T) {
	t.Parallel()
	r := newRelay(t)
	behind := r.before(t)
	a := start(t, newGateway(t, "gw-0"), seldom)
	b := start(t, newGateway(t, "gw-1"), func(c *gossip.Config) { seldom(c); behind(c) }, a.Mesh.Addr())
	waitPeers(t, b)
	waitPeers(t, a)
	b.attach(t, 3)
	eventually(t, func() bool { return a.sees("gw-1").Attached == 3 && a.sees("gw-1").Placeable() }, "it is a target")

	r.noTCP.Store(true)
	r.breakStreams(false)
	eventually(t, func() bool { return a.sees("gw-1").Suspect || !a.sees("gw-1").Placeable() }, "the next message cannot be sent")
	require.Equal(t, 3, a.sees("gw-1").Attached, "nobody is taken away from it")
	r.heal()
	eventually(t, func() bool { return a.sees("gw-1").Placeable() }, "it is a target again")
	require.Equal(t, 3, a.sees("gw-1").Attached)
	require.Equal(t, 3, b.sees("gw-1").Attached)
	require.False(t, a.saw(func(ev roster.Event) bool {
		return ev == roster.Departed{Gateway: "gw-1", Incarnation: b.Incarnation()}
	}))
}

// A gateway is taken for dead by all, and lives: all take that back.
func TestFalseDeathHeals(t *testing.T) {
	t.Parallel()
	var all []*process
	var relays []*relay
	for i := range 3 {
		r := newRelay(t)
		relays = append(relays, r)
		var seeds []string
		if i > 0 {
			seeds = []string{all[0].Mesh.Addr()}
		}
		all = append(all, start(t, newGateway(t, ring.GatewayID(fmt.Sprintf("gw-%d", i))), r.before(t), seeds...))
		waitPeers(t, all[i])
	}
	agree(t, all)
	relays[2].cut()
	for _, p := range all[:2] {
		eventually(t, func() bool { return p.sees("gw-2").Suspect }, "it is out of reach")
		require.Equal(t, 1, p.sees("gw-2").Attached)
	}
	relays[2].heal()
	for _, p := range all {
		for _, g := range p.Gateways() {
			eventually(t, func() bool { return p.sees(g.ID).Placeable() }, "everybody is trusted again")
		}
	}
	agree(t, all)
}

// Packets do not get through, as where only TCP is open: streams do for all
// that matters, probes included.
func TestWithoutPackets(t *testing.T) {
	t.Parallel()
	var all []*process
	var books []*logs
	for i := range 2 {
		r := newRelay(t)
		r.noUDP.Store(true)
		behind := r.before(t)
		var seeds []string
		if i > 0 {
			seeds = []string{all[0].Mesh.Addr()}
		}
		book := newLogs()
		books = append(books, book)
		all = append(all, start(t, newGateway(t, ring.GatewayID(fmt.Sprintf("gw-%d", i))), func(c *gossip.Config) {
			seldom(c)
			behind(c)
			c.Logger = book.logger
		}, seeds...))
		waitPeers(t, all[i])
	}
	agree(t, all)
	for _, book := range books {
		eventually(t, func() bool { return strings.Contains(book.String(), "over TCP but UDP probes failed") }, "probes find another way")
	}
	agree(t, all)
	for _, p := range all {
		require.False(t, p.lostAny(), "%s: %v", p.ID(), p.heard())
	}
}

// Names as long as they may be, encrypted and with a label, still fit into the
// packets by which gateways tell of each other.
func TestLongNames(t *testing.T) {
	t.Parallel()
	long := func(c *gossip.Config) { c.Key, c.Label = keyOf(1, 32), strings.Repeat("l", 255) }
	var all []*process
	for i := range 4 {
		var seeds []string
		if i > 0 {
			seeds = []string{all[i-1].Mesh.Addr()} // a chain: by hearsay alone the first knows the last
		}
		id := ring.GatewayID(strings.Repeat(string(rune('a'+i)), 255))
		all = append(all, start(t, newGateway(t, id), long, seeds...))
	}
	for _, p := range all {
		eventually(t, func() bool { return len(p.Gateways()) == 4 }, "all are known")
	}
	agree(t, all)
	all[3].kill()
	for _, p := range all[:3] {
		eventually(t, func() bool { return p.sees(all[3].ID()).Suspect }, "its silence is noticed")
	}
}

// A burst of messages of every size arrives whole, and in order.
func TestBurst(t *testing.T) {
	t.Parallel()
	change := func(c *gossip.Config) { seldom(c); keyed(keyOf(1, 32))(c) }
	a := start(t, newGateway(t, "gw-0"), change)
	b := start(t, newGateway(t, "gw-1"), change, a.Mesh.Addr())
	waitPeers(t, b)
	waitPeers(t, a)
	const messages = 1000
	sizes := []int{1, 100, 1399, 1400, 1500, 9000, 65_508, 70_000} // around those of packets
	want := make([]uint64, messages)
	for n := range want {
		want[n] = uint64(n + 1)
		require.NoError(t, a.Mesh.Send("gw-1", roster.Append(nil, roster.SnapshotRequest{
			From:        ring.GatewayID(strings.Repeat("f", sizes[n%len(sizes)])),
			Gateway:     "gw-nobody", // so that nobody answers
			Incarnation: 1,
			Have:        want[n],
		})))
	}
	var got []uint64
	eventually(t, func() bool {
		got = nil
		for _, ev := range b.heard() {
			if received, ok := ev.(roster.Received); ok {
				if request, ok := received.Message.(roster.SnapshotRequest); ok && request.Gateway == "gw-nobody" {
					got = append(got, request.Have)
				}
			}
		}
		return len(got) >= messages
	}, "all arrive")
	require.Equal(t, want, got)
}

// A gateway starts again somewhere else, under its ID. Its old address never
// answers any more. The others see its new endpoint, and keep whom they serve.
func TestW25GatewayChangesItsAddress(t *testing.T) {
	t.Parallel()
	var all []*process
	for i := range 3 {
		var seeds []string
		if i > 0 {
			seeds = []string{all[0].Mesh.Addr()}
		}
		all = append(all, start(t, newGateway(t, ring.GatewayID(fmt.Sprintf("gw-%d", i))), nil, seeds...))
		waitPeers(t, all[i])
	}
	for _, p := range all {
		p.attach(t, 4)
	}
	for _, p := range all[1:] {
		eventually(t, func() bool { return p.sees("gw-0").Attached == 4 }, "all is known")
	}
	all[0].kill()

	moved, err := redirect.NewGateway(redirect.Config{
		Gateway:     "gw-0",
		Incarnation: placement.Incarnation(incarnations.Add(1)),
		Endpoint:    "elsewhere:443",
		Roster:      roster.Config{Heartbeat: 500 * time.Millisecond, TimeToLive: 4 * time.Second},
	}, redirect.Hooks{})
	require.NoError(t, err)
	again := start(t, moved, nil, all[0].Mesh.Addr(), all[1].Mesh.Addr()) // one is its old address
	waitPeers(t, again)
	for _, p := range all[1:] {
		eventually(t, func() bool {
			g := p.sees("gw-0")
			return g.Endpoint == "elsewhere:443" && g.Attached == 0 && g.Placeable()
		}, "it is a target at its new address")
		require.Len(t, p.Gateways(), 3)
		require.Equal(t, 4, p.Stats().Served)
		eventually(t, func() bool { return again.sees(p.ID()).Attached == 4 }, "and knows what they serve")
	}
}

// transports is a transport that changes.
type transports struct{ atomic.Pointer[gossip.Mesh] }

func (c *transports) Send(to ring.GatewayID, message []byte) error {
	return c.Load().Send(to, message)
}

// The mesh of a running gateway ends and comes back under another address. It
// is the same start of the same gateway, with all its supervisors.
func TestW25MeshChangesItsAddress(t *testing.T) {
	t.Parallel()
	a := start(t, newGateway(t, "gw-0"), nil)
	b := &process{Gateway: newGateway(t, "gw-1")}
	join := func() {
		mesh, err := gossip.Join(t.Context(), gossip.Config{
			Gateway: b.ID(), Incarnation: b.Incarnation(), Bind: "127.0.0.1:0", Seeds: []string{a.Mesh.Addr()}, Probe: probe,
		}, b)
		require.NoError(t, err)
		b.Mesh = mesh
	}
	join()
	var current transports
	current.Store(b.Mesh)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx, &current) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		_ = b.Mesh.Close()
	})
	waitPeers(t, b)
	b.attach(t, 4)
	eventually(t, func() bool { return a.sees("gw-1").Attached == 4 }, "all is known")

	old := b.Mesh.Addr()
	require.NoError(t, b.Mesh.Close())
	join()
	current.Store(b.Mesh)
	require.NotEqual(t, old, b.Mesh.Addr())
	b.attach(t, 1)
	a.attach(t, 2)
	require.Eventually(t, func() bool {
		there, here := a.sees("gw-1"), b.sees("gw-0")
		return there.Incarnation == b.Incarnation() && there.Attached == 5 && there.Placeable() && here.Attached == 2 && here.Placeable()
	}, 4*patient, 5*time.Millisecond, "each hears the other")
	require.Equal(t, 5, b.Stats().Served)
}

// Many start at once, each with all as seeds, some of which never come.
func TestManyStartAtOnce(t *testing.T) {
	t.Parallel()
	const gateways = 8
	addrs := make([]string, gateways)
	for i := range addrs {
		addrs[i] = freeAddr(t)
	}
	seeds := append([]string{deafAddr(t), freeAddr(t), deafAddr(t)}, addrs...)
	all := make([]*process, gateways)
	var starting sync.WaitGroup
	for i := range all {
		gw := newGateway(t, ring.GatewayID(fmt.Sprintf("gw-%d", i)))
		all[i] = start(t, gw, func(c *gossip.Config) { c.Bind = addrs[i] }, seeds...)
		starting.Go(func() { _ = all[i].Mesh.WaitPeers(t.Context()) })
	}
	starting.Wait()
	for _, p := range all {
		eventually(t, func() bool { return len(p.Gateways()) == gateways }, "all are known")
	}
}
