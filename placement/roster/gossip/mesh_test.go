// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

func TestMain(m *testing.M) {
	// A probe that is under way waits for its answer, without a socket, even
	// when memberlist has been shut down.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

const (
	probe   = 50 * time.Millisecond
	patient = 30 * time.Second
)

// incarnations grow with every start, as they do if they are taken from the clock.
var incarnations atomic.Uint64

// process is a gateway with its mesh.
type process struct {
	*redirect.Gateway
	Mesh *gossip.Mesh
	stop func() // the gateway

	mu     sync.Mutex
	events []roster.Event
}

// Step implements [roster.Replica]: it keeps what the mesh says.
func (p *process) Step(ev roster.Event) {
	p.mu.Lock()
	p.events = append(p.events, ev)
	p.mu.Unlock()
	p.Gateway.Step(ev)
}

func (p *process) heard() []roster.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events)
}

// saw reports whether the mesh has said what is wanted.
func (p *process) saw(wanted func(roster.Event) bool) bool {
	return slices.ContainsFunc(p.heard(), wanted)
}

func newGateway(t *testing.T, id ring.GatewayID) *redirect.Gateway {
	t.Helper()
	gw, err := redirect.NewGateway(redirect.Config{
		Gateway:     id,
		Incarnation: placement.Incarnation(incarnations.Add(1)),
		Endpoint:    string(id) + ":443",
		Roster:      roster.Config{Heartbeat: 500 * time.Millisecond, TimeToLive: 4 * time.Second},
	}, redirect.Hooks{})
	require.NoError(t, err)
	return gw
}

// start runs a gateway. change may be nil.
func start(t *testing.T, gw *redirect.Gateway, change func(*gossip.Config), seeds ...string) *process {
	t.Helper()
	cfg := gossip.Config{
		Gateway:     gw.ID(),
		Incarnation: gw.Incarnation(),
		Bind:        "127.0.0.1:0",
		Seeds:       seeds,
		Probe:       probe,
	}
	if change != nil {
		change(&cfg)
	}
	p := &process{Gateway: gw}
	mesh, err := gossip.Join(t.Context(), cfg, p)
	require.NoError(t, err)
	p.Mesh = mesh
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { gw.Run(ctx, mesh) })
	p.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(p.kill)
	return p
}

// kill ends the process without a goodbye.
func (p *process) kill() {
	_ = p.Mesh.Close()
	p.stop()
}

func waitPeers(t *testing.T, p *process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	require.NoError(t, p.Mesh.WaitPeers(ctx))
}

// seldom is for tests that ask for what no machine can promise that answers
// probes late: nobody is ever taken for dead.
func seldom(c *gossip.Config) { c.Probe = 5 * time.Second }

// says reports whether the error tells of all of these.
func says(err error, texts ...string) bool {
	return err != nil && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(err.Error(), text) })
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, patient, 5*time.Millisecond, what)
}

// attach makes the gateway serve another n supervisors.
func (p *process) attach(t *testing.T, n int) {
	t.Helper()
	for range n {
		generation := placement.Generation(incarnations.Add(1))
		verdict, attachment := p.Admit(t.Context(), redirect.Hello{
			Member:     ring.MemberID(fmt.Sprintf("supervisor-%d", generation)),
			Generation: generation,
			Stay:       true,
		})
		require.Equal(t, redirect.Accept, verdict.Outcome)
		require.NotNil(t, attachment)
	}
}

// sees returns what p knows of the gateway id.
func (p *process) sees(id ring.GatewayID) placement.Gateway {
	for _, g := range p.Gateways() {
		if g.ID == id {
			return g
		}
	}
	return placement.Gateway{}
}

func fleet(t *testing.T, n int) []*process {
	t.Helper()
	all := []*process{start(t, newGateway(t, "gw-0"), nil)}
	for i := 1; i < n; i++ {
		all = append(all, start(t, newGateway(t, ring.GatewayID(fmt.Sprintf("gw-%d", i))), nil, all[0].Mesh.Addr()))
	}
	for _, p := range all {
		eventually(t, func() bool { return len(p.Gateways()) == n }, "all are known")
		waitPeers(t, p)
	}
	return all
}

func TestFleetFindsItselfFromOneSeed(t *testing.T) {
	t.Parallel()
	all := fleet(t, 4)
	all[2].attach(t, 3)
	for _, p := range all {
		eventually(t, func() bool { return p.sees("gw-2").Attached == 3 }, "what one serves is seen by all")
		eventually(t, func() bool { return p.Ready().Callers.Reason == roster.ReasonComplete }, "callers need not wait for the grace")
		for _, g := range p.Gateways() {
			eventually(t, func() bool { return p.sees(g.ID).Placeable() }, string(g.ID)+" is a target for "+string(p.ID()))
		}
	}
}

func TestWaitPeersKnowsLoads(t *testing.T) {
	t.Parallel()
	first := start(t, newGateway(t, "gw-0"), nil)
	waitPeers(t, first) // nobody else is there, and nobody is looked for
	first.attach(t, 7)

	late := start(t, newGateway(t, "gw-1"), nil, first.Mesh.Addr())
	waitPeers(t, late)
	require.Equal(t, 7, late.sees("gw-0").Attached)
	require.True(t, late.sees("gw-0").Placeable())
}

func TestWaitPeersSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	silent := start(t, newGateway(t, "gw-0"), nil)
	silent.stop()
	p := start(t, newGateway(t, "gw-1"), nil, silent.Mesh.Addr())
	eventually(t, func() bool {
		return p.saw(func(ev roster.Event) bool { return ev == roster.LinkUp{Gateway: "gw-0"} })
	}, "the link is up")

	ctx, cancel := context.WithTimeout(t.Context(), 3*probe)
	defer cancel()
	err := p.Mesh.WaitPeers(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, `"gw-0"`)
}

func TestLargeRecordArrives(t *testing.T) {
	t.Parallel()
	const members = 25_000
	gw, err := redirect.NewGateway(redirect.Config{
		Gateway:     "gw-0",
		Incarnation: placement.Incarnation(incarnations.Add(1)),
		Endpoint:    "gw-0:443",
		Roster:      roster.Config{Heartbeat: 500 * time.Millisecond, TimeToLive: 4 * time.Second, PageBytes: 32 << 10},
	}, redirect.Hooks{})
	require.NoError(t, err)
	first := start(t, gw, nil)
	first.attach(t, members)

	late := start(t, newGateway(t, "gw-1"), nil, first.Mesh.Addr())
	eventually(t, func() bool { return late.sees("gw-0").Attached == members }, "the snapshot arrives")
	eventually(t, func() bool { return late.Ready().Callers.Reason == roster.ReasonComplete }, "and is whole")
	pages := make(map[int]int)
	for _, ev := range late.heard() {
		if received, ok := ev.(roster.Received); ok {
			if page, ok := received.Message.(roster.Snapshot); ok {
				require.Greater(t, page.Pages, 10)
				pages[page.Page] = len(page.Entries)
			}
		}
	}
	sum := 0
	for _, entries := range pages {
		sum += entries
	}
	require.GreaterOrEqual(t, sum, members, "no page is missing: %v", pages)
}

func TestLeave(t *testing.T) {
	t.Parallel()
	all := fleet(t, 3)
	leaver := all[2]
	leaver.attach(t, 1)
	eventually(t, func() bool { return all[0].sees("gw-2").Attached == 1 }, "it serves one")
	require.NoError(t, leaver.Mesh.Leave(patient))
	for _, p := range all[:2] {
		departed := roster.Departed{Gateway: "gw-2", Incarnation: leaver.Incarnation()}
		eventually(t, func() bool { return p.saw(func(ev roster.Event) bool { return ev == departed }) }, "it said goodbye")
		eventually(t, func() bool { return len(p.Gateways()) == 2 }, "it is removed at once")
	}
	require.ErrorIs(t, leaver.Mesh.Leave(patient), gossip.ErrClosed)
	require.ErrorIs(t, leaver.Mesh.Send("", nil), gossip.ErrClosed)
	require.ErrorIs(t, leaver.Mesh.WaitPeers(t.Context()), gossip.ErrClosed)
}

func TestDeathMakesSuspect(t *testing.T) {
	t.Parallel()
	all := fleet(t, 4)
	all[3].kill()
	for _, p := range all[:3] {
		eventually(t, func() bool { return p.sees("gw-3").Suspect }, "its silence is noticed")
		require.True(t, p.saw(func(ev roster.Event) bool { return ev == roster.LinkLost{Gateway: "gw-3"} }))
		require.Len(t, p.Gateways(), 4, "suspect is not gone")
	}
}

func TestFailingSendIsNoticed(t *testing.T) {
	t.Parallel()
	// Probing alone would take some seconds.
	slow := func(c *gossip.Config) { c.Probe = 10 * probe }
	a := start(t, newGateway(t, "gw-0"), slow)
	b := start(t, newGateway(t, "gw-1"), slow, a.Mesh.Addr())
	waitPeers(t, b)
	waitPeers(t, a)
	b.kill()
	c := start(t, newGateway(t, "gw-2"), slow, a.Mesh.Addr())
	waitPeers(t, c)
	for _, p := range []*process{a, c} {
		eventually(t, func() bool {
			return p.saw(func(ev roster.Event) bool { return ev == roster.LinkLost{Gateway: "gw-1"} })
		}, "it cannot be sent anything")
		listed := []ring.GatewayID{}
		for _, ev := range p.heard() {
			if d, ok := ev.(roster.Discovered); ok {
				listed = d.Gateways
			}
		}
		require.Contains(t, listed, ring.GatewayID("gw-1"), "no probe has found out yet")
	}
	require.True(t, a.sees("gw-1").Suspect)
}

// A goodbye that crosses another one is not waited for.
func TestAllLeaveAtOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		all := fleet(t, 4)
		errs := make([]error, len(all))
		var leaving sync.WaitGroup
		for i, p := range all {
			leaving.Go(func() { errs[i] = p.Mesh.Leave(2 * patient) })
		}
		leaving.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	}
}

func TestLeaveAndCloseAtOnce(t *testing.T) {
	t.Parallel()
	all := fleet(t, 2)
	var ends sync.WaitGroup
	for range 2 {
		ends.Go(func() { _ = all[1].Mesh.Leave(patient) })
		ends.Go(func() { _ = all[1].Mesh.Close() })
	}
	ends.Wait()
	require.ErrorIs(t, all[1].Mesh.Send("", nil), gossip.ErrClosed)
}

func TestRestartUnderTheSameID(t *testing.T) {
	t.Parallel()
	all := fleet(t, 3)
	all[1].attach(t, 2)
	eventually(t, func() bool { return all[0].sees("gw-1").Attached == 2 }, "it serves two")
	all[1].kill()
	again := start(t, newGateway(t, "gw-1"), nil, all[0].Mesh.Addr())
	waitPeers(t, again)
	again.attach(t, 1)
	for _, p := range []*process{all[0], all[2]} {
		eventually(t, func() bool {
			g := p.sees("gw-1")
			return g.Incarnation == again.Incarnation() && g.Attached == 1 && g.Placeable()
		}, "the new process takes the old one's place")
	}
}

func TestOldNodeDiesUnnoticed(t *testing.T) {
	t.Parallel()
	logs := newLogs()
	a := start(t, newGateway(t, "gw-0"), func(c *gossip.Config) { c.Logger = logs.logger })
	old := start(t, newGateway(t, "gw-1"), nil, a.Mesh.Addr())
	waitPeers(t, old)
	waitPeers(t, a)
	old.kill()
	again := start(t, newGateway(t, "gw-1"), nil, a.Mesh.Addr())
	waitPeers(t, again)
	eventually(t, func() bool {
		return strings.Contains(logs.String(), fmt.Sprintf(`"gossip: peer lost" gateway=gw-1 incarnation=%d`, old.Incarnation()))
	}, "the old node dies")
	heard := a.heard()
	lost := slices.Index(heard, roster.Event(roster.LinkLost{Gateway: "gw-1"}))
	up := slices.Index(heard[lost+1:], roster.Event(roster.LinkUp{Gateway: "gw-1"}))
	if lost >= 0 {
		require.GreaterOrEqual(t, up, 0, "the new one came after that")
	}
	require.NotContains(t, heard[lost+1+max(up, 0):], roster.LinkLost{Gateway: "gw-1"})
}

func TestNewerProcessUnderTheSameID(t *testing.T) {
	t.Parallel()
	conflict := make(chan roster.Conflict, 1)
	id := incarnations.Add(1)
	older, err := redirect.NewGateway(redirect.Config{
		Gateway:     "gw-0",
		Incarnation: placement.Incarnation(id),
		Roster:      roster.Config{Heartbeat: 100 * time.Millisecond, TimeToLive: time.Second},
	}, redirect.Hooks{Conflict: func(c roster.Conflict) { conflict <- c }})
	require.NoError(t, err)
	first := start(t, older, nil)
	other := start(t, newGateway(t, "gw-1"), nil, first.Mesh.Addr())
	waitPeers(t, other)

	newer := start(t, newGateway(t, "gw-0"), nil, other.Mesh.Addr())
	select {
	case c := <-conflict:
		require.Equal(t, newer.Incarnation(), c.Incarnation)
	case <-time.After(patient):
		require.Fail(t, "the older process has not been told")
	}
	eventually(t, func() bool { return other.sees("gw-0").Incarnation == newer.Incarnation() }, "the newer one is right")
	require.NoError(t, first.Mesh.Leave(patient))
	newer.attach(t, 1)
	eventually(t, func() bool { g := other.sees("gw-0"); return g.Attached == 1 && g.Placeable() }, "and stays when the older one leaves")
}

func TestAllStartAtOnce(t *testing.T) {
	t.Parallel()
	// Everybody's seeds are known before anybody listens.
	seeds := make([]string, 3)
	for i := range seeds {
		seeds[i] = freeAddr(t)
	}
	first := start(t, newGateway(t, "gw-0"), func(c *gossip.Config) { c.Bind = seeds[0] }, seeds...)
	eventually(t, func() bool {
		return first.saw(func(ev roster.Event) bool { _, ok := ev.(roster.DiscoveryFailed); return ok })
	}, "nobody is there yet")
	require.NotEqual(t, roster.ReasonComplete, first.Ready().Callers.Reason)
	all := []*process{first}
	for i := 1; i < len(seeds); i++ {
		all = append(all, start(t, newGateway(t, ring.GatewayID(fmt.Sprintf("gw-%d", i))), func(c *gossip.Config) { c.Bind = seeds[i] }, seeds...))
	}
	for _, p := range all {
		eventually(t, func() bool { return len(p.Gateways()) == 3 }, "all are known")
		waitPeers(t, p)
		eventually(t, func() bool { return p.Ready().Callers.Reason == roster.ReasonComplete }, "discovery is complete")
	}
}

func TestNoSeedButItself(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	p := start(t, newGateway(t, "gw-0"), func(c *gossip.Config) { c.Bind = addr }, addr)
	waitPeers(t, p)
	eventually(t, func() bool { return p.Ready().Callers.Reason == roster.ReasonComplete }, "there is nobody else to be found")
}

func TestIslandsComeTogether(t *testing.T) {
	t.Parallel()
	seed := freeAddr(t)
	a := start(t, newGateway(t, "gw-0"), nil)
	b := start(t, newGateway(t, "gw-1"), nil, a.Mesh.Addr(), seed)
	waitPeers(t, b)
	c := start(t, newGateway(t, "gw-2"), func(c *gossip.Config) { c.Bind = seed })
	for _, p := range []*process{a, b, c} {
		eventually(t, func() bool { return len(p.Gateways()) == 3 }, "a seed that came late is found")
	}
}

func TestLostPeerIsFoundAgain(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	a := start(t, newGateway(t, "gw-0"), nil)
	b := start(t, newGateway(t, "gw-1"), func(c *gossip.Config) { c.Bind = addr }, a.Mesh.Addr())
	waitPeers(t, b)
	waitPeers(t, a)
	b.kill()
	eventually(t, func() bool {
		return a.saw(func(ev roster.Event) bool { _, ok := ev.(roster.DiscoveryFailed); return ok })
	}, "to be alone all of a sudden is no proof that the others are gone")
	require.Len(t, a.Gateways(), 2)
	// It comes back where it was, and knows nobody; neither has a seed.
	again := start(t, newGateway(t, "gw-1"), func(c *gossip.Config) { c.Bind = addr })
	eventually(t, func() bool { return a.sees("gw-1").Incarnation == again.Incarnation() }, "it is found again")
}

func TestSend(t *testing.T) {
	t.Parallel()
	a := start(t, newGateway(t, "gw-0"), func(c *gossip.Config) { seldom(c); c.Backlog = 1 << 10 })
	require.ErrorIs(t, a.Mesh.Send("gw-1", []byte("x")), gossip.ErrUnknownPeer)
	require.NoError(t, a.Mesh.Send("", []byte("x")), "nobody is everybody")
	b := start(t, newGateway(t, "gw-1"), seldom, a.Mesh.Addr())
	waitPeers(t, b)
	require.ErrorIs(t, a.Mesh.Send("gw-1", make([]byte, 2<<10)), gossip.ErrBacklog)
	require.ErrorIs(t, a.Mesh.Send("", make([]byte, 2<<10)), gossip.ErrBacklog)
	require.ErrorIs(t, b.Mesh.Send("gw-0", make([]byte, 20<<20)), gossip.ErrBacklog)
	require.NoError(t, a.Mesh.Send("gw-1", []byte{0, 0}), "what a peer does not understand it ignores")
}

func TestLogging(t *testing.T) {
	t.Parallel()
	logs := newLogs()
	p := start(t, newGateway(t, "gw-0"), func(c *gossip.Config) { c.Logger = logs.logger }, freeAddr(t))
	eventually(t, func() bool {
		return p.saw(func(ev roster.Event) bool { _, ok := ev.(roster.DiscoveryFailed); return ok })
	}, "the seed does not answer")
	p.kill()
	require.Contains(t, logs.String(), `level=WARN msg="gossip: no peer found"`)
	require.Contains(t, logs.String(), `level=DEBUG msg=memberlist said="failed to join`)
}

// logs is what a logger has written.
type logs struct {
	logger *slog.Logger
	mu     sync.Mutex
	out    bytes.Buffer
}

func newLogs() *logs {
	l := &logs{}
	l.logger = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return l
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// freeAddr returns an address where nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}
