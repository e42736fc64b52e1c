// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/ring"
)

// deafAddr returns an address that takes streams and never answers, which a
// look waits for longer than for one that does not take them.
func deafAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// discovery is a list of addresses that changes, and may fail.
type discovery struct {
	mu    sync.Mutex
	seeds []string
	err   error
	calls int
}

func (d *discovery) set(err error, seeds ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seeds, d.err = seeds, err
}

func (d *discovery) discover(context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	return d.seeds, d.err
}

func (d *discovery) called() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

func (d *discovery) use(c *gossip.Config) { c.Discover = d.discover }

func TestDiscoverGivesSeeds(t *testing.T) {
	t.Parallel()
	broken := errors.New("the list is behind")
	var d discovery
	d.set(broken)
	p := start(t, newGateway(t, "gw-0"), d.use)
	eventually(t, func() bool { return errors.Is(p.failed(), broken) }, "its error is told")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for _, err := range []error{p.failed(), p.Mesh.WaitPeers(ctx)} {
		require.ErrorIs(t, err, gossip.ErrAlone)
		require.ErrorContains(t, err, "Config.Discover")
	}
	require.NotEqual(t, roster.ReasonComplete, p.Ready().Callers.Reason, "others may exist")

	// A list that names nobody who answers is no list of nobody.
	nobody, noAddress := freeAddr(t), "gw-7"
	d.set(nil, nobody, noAddress)
	eventually(t, func() bool { return says(p.failed(), nobody, noAddress) }, "it is asked anew each time")

	other := start(t, newGateway(t, "gw-1"), nil)
	d.set(nil, other.Mesh.Addr(), p.Mesh.Addr())
	waitPeers(t, p)
	waitPeers(t, other)
	require.Len(t, p.Gateways(), 2)
	eventually(t, func() bool { return p.Ready().Callers.Reason == roster.ReasonComplete }, "callers are let in")

	// From now on it may fail: nobody is taken away.
	d.set(broken)
	calls := d.called()
	eventually(t, func() bool { return d.called() > calls }, "it is asked now and then")
	agree(t, []*process{p, other})
	eventually(t, func() bool { return p.sees("gw-1").Placeable() }, "the other is trusted")
}

func TestDiscoverAndSeeds(t *testing.T) {
	t.Parallel()
	bySeed, byDiscover := start(t, newGateway(t, "gw-0"), nil), start(t, newGateway(t, "gw-1"), nil)
	var d discovery
	d.set(nil, byDiscover.Mesh.Addr())
	p := start(t, newGateway(t, "gw-2"), d.use, bySeed.Mesh.Addr())
	for _, p := range []*process{p, bySeed, byDiscover} {
		eventually(t, func() bool { return len(p.Gateways()) == 3 }, "both count")
	}

	// Either is enough.
	d.set(errors.New("the list is behind"))
	waitPeers(t, start(t, newGateway(t, "gw-3"), d.use, bySeed.Mesh.Addr()))
	d.set(nil, byDiscover.Mesh.Addr())
	waitPeers(t, start(t, newGateway(t, "gw-4"), d.use, freeAddr(t)))
}

func TestDiscoverNobody(t *testing.T) {
	t.Parallel()
	var d discovery
	p := start(t, newGateway(t, "gw-0"), d.use)
	waitPeers(t, p)
	eventually(t, func() bool { return p.Ready().Callers.Reason == roster.ReasonComplete }, "there is nobody else")

	// Once there were others, an empty list takes nobody away.
	other := start(t, newGateway(t, "gw-1"), nil, p.Mesh.Addr())
	waitPeers(t, other)
	eventually(t, func() bool { return len(p.Gateways()) == 2 }, "it is found")
	other.kill()
	eventually(t, func() bool { return p.failed() != nil }, "the other is lost")
	calls := d.called()
	eventually(t, func() bool { return d.called() > calls+1 }, "it is asked again")
	for _, ev := range p.heard() {
		if list, ok := ev.(roster.Discovered); ok && len(list.Gateways) == 2 {
			calls = 0 // from here on nobody may be missing
		} else if ok && calls == 0 {
			require.Len(t, list.Gateways, 2)
		}
	}
	require.Len(t, p.Gateways(), 2)
}

// A hook that hangs holds up neither the seeds nor the end.
func TestDiscoverHangs(t *testing.T) {
	t.Parallel()
	first := start(t, newGateway(t, "gw-0"), nil)
	var calls, ended atomic.Int64
	p := start(t, newGateway(t, "gw-1"), func(c *gossip.Config) {
		c.Discover = func(ctx context.Context) ([]string, error) {
			calls.Add(1)
			defer ended.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}, first.Mesh.Addr())
	waitPeers(t, p)
	require.Zero(t, ended.Load(), "it was waited for")
	require.NoError(t, p.Mesh.Close())
	require.Equal(t, calls.Load(), ended.Load())
}

// One seed lives. Those that refuse, those that never answer, and those whose
// name nobody knows or nobody looks up are not waited for in turn: one alone
// would take ten seconds.
func TestDeadSeedsDoNotHoldUp(t *testing.T) {
	t.Parallel()
	living := start(t, newGateway(t, "gw-0"), nil)
	deafServer, err := net.ListenPacket("udp", "127.0.0.1:0") // for names
	require.NoError(t, err)
	defer deafServer.Close()
	seeds := []string{living.Mesh.Addr(), "name-1.test:7946", "name-2.test:7946"}
	for range 12 {
		seeds = append(seeds, deafAddr(t), freeAddr(t))
	}
	began := time.Now()
	p := start(t, newGateway(t, "gw-1"), func(c *gossip.Config) {
		c.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "udp", deafServer.LocalAddr().String())
		}}
	}, seeds...)
	waitPeers(t, p)
	require.Less(t, time.Since(began), 9*time.Second)
	require.Len(t, p.Gateways(), 2)
	eventually(t, func() bool { return p.Ready().Callers.Reason == roster.ReasonComplete }, "callers need not wait either")
}

func TestUnansweredSeedsAreNamed(t *testing.T) {
	t.Parallel()
	unknown := newNameserver(t)
	deaf, dead := deafAddr(t), freeAddr(t)
	p := start(t, newGateway(t, "gw-0"), func(c *gossip.Config) { c.Resolver = unknown.resolver() },
		deaf, dead, "nobody.test:7946")
	require.Eventually(t, func() bool { return p.failed() != nil }, 4*patient, 5*time.Millisecond)
	for _, name := range []string{deaf, dead, "nobody.test"} {
		require.ErrorContains(t, p.failed(), name)
	}
}

// A name stands for all its addresses, as they are at each attempt.
func TestNameWithManyAddresses(t *testing.T) {
	t.Parallel()
	const name = "gateways.test"
	names := newNameserver(t)
	living := start(t, newGateway(t, "gw-0"), nil)
	_, port, err := net.SplitHostPort(living.Mesh.Addr())
	require.NoError(t, err)
	p := start(t, newGateway(t, "gw-1"), func(c *gossip.Config) { c.Resolver = names.resolver() }, name+":"+port)
	eventually(t, func() bool { return p.failed() != nil }, "nobody has that name yet")
	require.ErrorContains(t, p.failed(), name)

	names.set(name, "127.0.0.2", "127.0.0.3")
	eventually(t, func() bool { return says(p.failed(), "127.0.0.2:"+port, "127.0.0.3:"+port) }, "those whose name it is do not answer")

	names.set(name, "127.0.0.2", "127.0.0.1", "127.0.0.3")
	waitPeers(t, p)
	require.Len(t, p.Gateways(), 2)
	require.Positive(t, names.questions())
}

func TestBindByName(t *testing.T) {
	t.Parallel()
	names := newNameserver(t)
	names.set("me.test", "127.0.0.1")
	names.set("outside.test", "127.0.0.9")
	p := start(t, newGateway(t, "gw-0"), func(c *gossip.Config) {
		c.Resolver, c.Bind, c.Advertise = names.resolver(), "me.test:0", "outside.test:4711"
	})
	require.Equal(t, "127.0.0.9:4711", p.Mesh.Addr())
}

// Everybody is cut off from everybody, and no seed of anybody's is alive any
// more. Nobody is taken for gone meanwhile, and they come together by
// themselves.
func TestIsolatedGatewaysMeetAgain(t *testing.T) {
	t.Parallel()
	seed := start(t, newGateway(t, "seed"), nil)
	var all []*process
	var relays []*relay
	for i := range 3 {
		r := newRelay(t)
		relays = append(relays, r)
		all = append(all, start(t, newGateway(t, ring.GatewayID(fmt.Sprintf("gw-%d", i))), r.before(t), seed.Mesh.Addr()))
		waitPeers(t, all[i])
	}
	for _, p := range all {
		eventually(t, func() bool { return len(p.Gateways()) == 4 }, "all are known")
	}
	agree(t, all)
	require.NoError(t, seed.Mesh.Leave(patient))
	for _, p := range all {
		eventually(t, func() bool { return len(p.Gateways()) == 3 }, "the seed has left")
	}

	for _, r := range relays {
		r.cut()
	}
	for _, p := range all {
		require.Eventually(t, func() bool { return p.failed() != nil }, 4*patient, 5*time.Millisecond, "everybody is alone")
		require.ErrorIs(t, p.failed(), gossip.ErrAlone)
		require.Len(t, p.Gateways(), 3, "nobody is gone")
		require.Equal(t, 1, p.sees(p.ID()).Attached, "and nobody has moved")
	}
	for _, r := range relays {
		r.heal()
	}
	agree(t, all)
	for _, p := range all {
		for _, g := range p.Gateways() {
			eventually(t, func() bool { return p.sees(g.ID).Placeable() }, string(p.ID())+" trusts "+string(g.ID))
		}
	}
}
