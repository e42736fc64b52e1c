// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/placement/roster/kube"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// One peer per pod, whatever slices and families it is in.
func TestLists(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		t.Run(map[bool]string{true: "streamed", false: "plain"}[streamed], func(t *testing.T) {
			s := newSite(t)
			if !streamed {
				s.plainLists()
			}
			s.put(slice("v4-1", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2")))
			s.put(slice("v4-2", terminating(pod("gw-c", "10.0.0.3"), true)))
			s.put(slice("v6", pod("gw-a", "fd00::1"), pod("gw-b", "fd00::2"), pod("gw-d", "fd00::4")))
			other := slice("other", pod("db-0", "10.0.0.9"))
			other.Labels["kubernetes.io/service-name"] = "database"
			s.put(other)

			w := s.start(nil)
			w.lists("gw-a", "gw-b", "gw-c", "gw-d")
			require.Equal(t, []kube.Peer{
				{Gateway: "gw-a", Addresses: []string{"10.0.0.1:7946", "[fd00::1]:7946"}, Ready: true, Serving: true},
				{Gateway: "gw-b", Addresses: []string{"10.0.0.2:7946", "[fd00::2]:7946"}, Ready: true, Serving: true},
				{Gateway: "gw-c", Addresses: []string{"10.0.0.3:7946"}, Serving: true, Terminating: true},
				{Gateway: "gw-d", Addresses: []string{"[fd00::4]:7946"}, Ready: true, Serving: true},
			}, slices.Collect(w.Peers()))
			require.Equal(t, []string{"10.0.0.2:7946", "10.0.0.3:7946", "[fd00::4]:7946"}, w.seeds())
			require.Len(t, w.told(), 1, "a list is told as a whole")
			listed := slices.ContainsFunc(s.asked(), func(r request) bool { return !r.watch })
			require.Equal(t, !streamed || !s.streamsLists(), listed, "%+v", s.asked())
		})
	}
}

// Who comes is told at once; who terminates is there; who goes has gone after a while.
func TestFollows(t *testing.T) {
	s := newSite(t)
	w := s.start(func(c *kube.Config) { c.Settle = 10 * time.Millisecond })
	require.Empty(t, w.seeds(), "there is a list, of nobody")
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	w.lists("gw-a")
	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2")))
	w.lists("gw-a", "gw-b")
	s.put(slice("two", pod("gw-c", "10.0.0.3")))
	w.lists("gw-a", "gw-b", "gw-c")

	told := len(w.told())
	s.put(slice("one", pod("gw-a", "10.0.0.1"), terminating(pod("gw-b", "10.0.0.2"), false)))
	w.knows("terminating", func(p kube.Peer) bool { return p.Terminating && !p.Serving })
	s.remove("two")
	w.lists("gw-a", "gw-b")
	require.Len(t, w.told(), told+1)
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	w.lists("gw-a")
}

// W25: a pod comes back under its name with another address.
func TestNewAddress(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2")))
	w := s.start(nil)
	w.lists("gw-a", "gw-b")
	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.7")))
	s.eventually("the new address", func() bool { return slices.Equal(w.seeds(), []string{"10.0.0.7:7946"}) })
	require.Len(t, w.told(), 1, "the list is the same")
}

// An endpoint moves from one slice to another: for a moment it is in neither.
func TestMovesBetweenSlices(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2")))
	s.put(slice("two", pod("gw-c", "10.0.0.3")))
	w := s.start(nil)
	w.lists("gw-a", "gw-b", "gw-c")
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	s.eventually("gw-b is in no slice", func() bool { return len(slices.Collect(w.Peers())) == 2 })
	s.put(slice("two", pod("gw-b", "10.0.0.2"), pod("gw-c", "10.0.0.3")))
	s.eventually("gw-b is back", func() bool { return len(slices.Collect(w.Peers())) == 3 })
	require.Len(t, w.told(), 1)
}

// S53, S60: the API server is away, and things change meanwhile. That is told,
// takes nobody away, and when it is back the list is whole.
func TestOutage(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2"), pod("gw-c", "10.0.0.3")))
	w := s.start(nil)
	w.lists("gw-a", "gw-b", "gw-c")
	s.down()
	require.ErrorContains(t, w.fails(), `endpointslices of service "gateways" in namespace "`+s.namespace+`"`)
	require.Equal(t, []string{"10.0.0.2:7946", "10.0.0.3:7946"}, w.seeds(), "as known last")

	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2"), pod("gw-d", "10.0.0.4")))
	s.up()
	w.lists("gw-a", "gw-b", "gw-c", "gw-d")
	require.Equal(t, []string{"10.0.0.2:7946", "10.0.0.4:7946"}, w.seeds())
	for _, ev := range w.told() {
		if list, ok := ev.(roster.Discovered); ok {
			require.Subset(t, list.Gateways, []ring.GatewayID{"gw-a", "gw-b", "gw-c"})
		}
	}
	require.Equal(t, 1, w.log.lines("level=WARN"), "%s", w.log)
	require.Equal(t, 1, w.log.lines("level=WARN", "gateways cannot be listed"))
}

func TestShortOutageIsTolerated(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	w := s.start(func(c *kube.Config) { c.Tolerance = time.Hour })
	w.lists("gw-a")
	s.down()
	s.eventually("it is noticed", func() bool { return w.log.lines("level=INFO", "the API server fails") > 0 })
	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2")))
	s.up()
	w.lists("gw-a", "gw-b")
	require.Len(t, w.told(), 2, "no failure among them")
}

// A stream that breaks is no failure: the next one goes on where it was.
func TestDroppedConnection(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	w := s.start(nil)
	w.lists("gw-a")
	s.put(slice("two", pod("gw-b", "10.0.0.2")))
	w.lists("gw-a", "gw-b") // so the watch has begun
	asked := len(s.asked())
	s.drop()
	s.put(slice("three", pod("gw-c", "10.0.0.3")))
	w.lists("gw-a", "gw-b", "gw-c")
	require.Len(t, w.told(), 3)
	for _, r := range s.asked()[asked:] {
		require.NotContains(t, []string{"", "0"}, r.version, "it begins anew: %+v", r)
	}
}

// A stream that ends, as all do after some minutes, is followed by another.
func TestWatchEnds(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	w := s.start(nil)
	w.lists("gw-a")
	s.put(slice("two", pod("gw-b", "10.0.0.2"))) // a stream without any event is no good sign
	w.lists("gw-a", "gw-b")
	asked := len(s.asked())
	s.finish()
	s.put(slice("three", pod("gw-c", "10.0.0.3")))
	w.lists("gw-a", "gw-b", "gw-c")
	require.Len(t, w.told(), 3)
	for _, r := range s.asked()[asked:] {
		require.True(t, r.watch && !r.streamed && r.version != "", "it lists again: %+v", r)
	}
}

// The server is stopped and started: its address refuses for a while, and then
// the watch goes on without a new list.
func TestServerRestarts(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	w := s.start(nil)
	w.lists("gw-a")
	s.put(slice("two", pod("gw-b", "10.0.0.2")))
	w.lists("gw-a", "gw-b")
	asked := len(s.asked())
	s.retire()
	require.ErrorContains(t, w.fails(), "connection refused")
	s.put(slice("three", pod("gw-c", "10.0.0.3")))
	s.up()
	w.lists("gw-a", "gw-b", "gw-c")
	for _, r := range s.asked()[asked:] {
		require.True(t, r.watch && !r.streamed && r.version != "", "it lists again: %+v", r)
	}
}

// The version to go on from has been forgotten (410 Gone). The new list
// differs in many slices, and is told as one.
func TestVersionExpires(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		t.Run(map[bool]string{true: "streamed", false: "plain"}[streamed], func(t *testing.T) {
			s := newSite(t)
			if !streamed {
				s.plainLists()
			}
			s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2")))
			w := s.start(nil)
			w.lists("gw-a", "gw-b")
			s.put(slice("two", pod("gw-c", "10.0.0.3")))
			w.lists("gw-a", "gw-b", "gw-c") // so the watch has begun
			release := s.hold()
			s.expire()
			s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-c", "10.0.0.3")))
			s.remove("two")
			s.put(slice("three", pod("gw-b", "10.0.0.2"), pod("gw-d", "10.0.0.4")))
			release()
			w.lists("gw-a", "gw-b", "gw-c", "gw-d")
			require.Len(t, w.told(), 3, "two lists before, one after, and no failure")
		})
	}
}

// The server's own way to say it: in the stream.
func TestVersionExpiresInTheStream(t *testing.T) {
	s := ownSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2")))
	w := s.start(nil)
	w.lists("gw-a", "gw-b")
	release := s.hold()
	s.drop()
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	s.put(slice("two", pod("gw-b", "10.0.0.2"), pod("gw-c", "10.0.0.3")))
	s.own.forget()
	release()
	w.lists("gw-a", "gw-b", "gw-c")
	require.Len(t, w.told(), 2)
	require.Empty(t, s.asked()[len(s.asked())-1].version, "it has not begun anew")
}

// A bookmark keeps the version young while others' slices change: the next watch
// goes on from it, though all versions before it have been forgotten.
func TestBookmark(t *testing.T) {
	s := ownSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	w := s.start(nil)
	w.lists("gw-a")
	version := s.own.bookmark()
	s.put(slice("two", pod("gw-b", "10.0.0.2")))
	w.lists("gw-a", "gw-b")
	asked := s.asked()
	require.Equal(t, []request{{watch: true, version: strconv.Itoa(version)}}, asked[1:])
}

// The API server takes its time: nothing is told, and who asks waits.
func TestSlowStart(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2")))
	release := s.hold()
	defer release()
	w := s.start(nil)
	s.eventually("it asks", func() bool { return len(s.asked()) > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.WaitList(ctx), context.Canceled)
	_, err := w.Seeds(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, w.told())
	require.Empty(t, slices.Collect(w.Peers()))

	release()
	require.Equal(t, []string{"10.0.0.2:7946"}, w.seeds())
	require.NoError(t, w.WaitList(t.Context()))
	w.lists("gw-a", "gw-b")
}

// It is not there yet when the gateway starts.
func TestServerComesLater(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	s.down()
	w := s.start(func(c *kube.Config) { c.Tolerance = time.Hour })
	require.Error(t, w.fails(), "nothing is known: that is told at once")
	_, err := w.Seeds(t.Context())
	require.Error(t, err)
	s.up()
	w.lists("gw-a")
	require.Empty(t, w.seeds())
}

// 403: whoever reads the log knows what to do.
func TestForbidden(t *testing.T) {
	s := newSite(t)
	w := s.start(func(c *kube.Config) { c.Client = s.nobody })
	err := w.fails()
	require.ErrorIs(t, err, kube.ErrForbidden)
	require.ErrorContains(t, err, `in namespace "`+s.namespace+`"`)
	_, err = w.Seeds(t.Context())
	require.ErrorIs(t, err, kube.ErrForbidden)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.WaitList(ctx), kube.ErrForbidden)
	require.Positive(t, w.log.lines("level=WARN", "not allowed to list and watch endpointslices", "get, list and watch"))
	require.Zero(t, w.log.lines("level=ERROR"), "%s", w.log)
}

// A list that never had this gateway is behind, or of another Service. If it
// has it no more, that is said (S62).
func TestPartial(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-b", "10.0.0.2")))
	w := s.start(func(c *kube.Config) { c.Settle = time.Millisecond })
	partial := func(ids ...ring.GatewayID) {
		t.Helper()
		w.until(func(ev roster.Event) bool {
			list, ok := ev.(roster.Discovered)
			return ok && list.Partial && slices.Equal(list.Gateways, ids)
		}, "partial")
	}
	partial("gw-b")
	s.put(slice("one", pod("gw-b", "10.0.0.2"), pod("gw-c", "10.0.0.3")))
	partial("gw-b", "gw-c")
	require.Equal(t, 1, w.log.lines("level=WARN", "still lacks this gateway", "gateway=gw-a"))
	require.Equal(t, 1, w.log.lines("level=INFO", "until it has this gateway", "gateway=gw-a"))
	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2")))
	w.lists("gw-a", "gw-b") // gw-c has gone

	nameless := pod("", "10.0.0.3")
	nameless.TargetRef = nil
	s.put(slice("two", nameless))
	partial("gw-a", "gw-b")
	require.Equal(t, 1, w.log.lines("level=WARN", "name neither a pod nor a host"))
	named := nameless
	named.Hostname = new("gw-c")
	s.put(slice("two", named))
	w.lists("gw-a", "gw-b", "gw-c")
	s.put(slice("one", pod("gw-b", "10.0.0.2")))
	w.lists("gw-b", "gw-c")
	require.Equal(t, 1, w.log.lines("level=WARN", "does not have this gateway any more", "gateway=gw-a"))
}

// The first gateway of an empty fleet is ready for callers as soon as it is
// listed (S22); during an outage its view is called stale, and keeps everybody (S53).
func TestGateway(t *testing.T) {
	s := newSite(t)
	gateway, err := redirect.NewGateway(redirect.Config{Gateway: self, Incarnation: 1, Endpoint: "10.0.0.1:7000"}, redirect.Hooks{})
	require.NoError(t, err)
	gateway.Step(roster.StateChanged{State: placement.Ready})
	require.Equal(t, roster.Check{Reason: roster.ReasonDiscovery}, gateway.Ready().Callers)
	d, err := kube.Start(kube.Config{
		Gateway: self, Service: service, Namespace: s.namespace, Client: s.config(), Settle: time.Millisecond, Tolerance: time.Millisecond,
	}, gateway)
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, d.WaitList(t.Context()))
	require.Equal(t, roster.Check{Reason: roster.ReasonDiscovery}, gateway.Ready().Callers, "a list that lacks this gateway is no list")
	s.put(slice("one", pod(self, "10.0.0.1")))
	s.eventually("callers", func() bool { return gateway.Ready().Callers == roster.Check{OK: true, Reason: roster.ReasonComplete} })

	verdict, _ := gateway.Admit(t.Context(), redirect.Hello{Member: "edge-1", Generation: 1, CanRedirect: true})
	require.Equal(t, redirect.Accept, verdict.Outcome)
	s.down()
	s.eventually("it is stale", func() bool { return gateway.Stats().Stale })
	require.Equal(t, 1, gateway.Stats().Served)
	require.True(t, gateway.Ready().Callers.OK)
	s.up()
	s.eventually("it is fresh", func() bool { return !gateway.Stats().Stale })
	require.Equal(t, 1, gateway.Stats().Served)
}

// wire is a mesh of two gateways, without any network.
type wire struct {
	far roster.Replica
	cut *atomic.Bool
}

// Send implements [roster.Transport].
func (w wire) Send(_ ring.GatewayID, message []byte) error {
	m, err := roster.Decode(message)
	if err == nil && !w.cut.Load() {
		go w.far.Step(roster.Received{Message: m})
	}
	return err
}

// The only other gateway dies. A mesh cannot tell that from being cut off, and
// keeps it in doubt for ever; the pod's end in Kubernetes is proof.
func TestGoneForGood(t *testing.T) {
	s := newSite(t)
	s.put(slice("one", pod("gw-a", "10.0.0.1"), pod("gw-b", "10.0.0.2")))
	cut := new(atomic.Bool)
	start := func(id ring.GatewayID) (*redirect.Gateway, func(far roster.Replica) (stop func())) {
		gateway, err := redirect.NewGateway(redirect.Config{
			Gateway: id, Incarnation: 1, Endpoint: string(id) + ":7000",
			Roster: roster.Config{Heartbeat: 20 * time.Millisecond, TimeToLive: 100 * time.Millisecond},
		}, redirect.Hooks{})
		require.NoError(t, err)
		return gateway, func(far roster.Replica) func() {
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { gateway.Run(ctx, wire{far, cut}) })
			stop := sync.OnceFunc(func() { cancel(); running.Wait() })
			t.Cleanup(stop)
			return stop
		}
	}
	a, runA := start("gw-a")
	b, runB := start("gw-b")
	mesh := kube.LinksOnly(a)
	runA(b)
	kill := runB(mesh)
	d, err := kube.Start(kube.Config{
		Gateway: "gw-a", Service: service, Namespace: s.namespace, Client: s.config(), Settle: time.Millisecond,
	}, a)
	require.NoError(t, err)
	defer d.Close()
	s.eventually("they know each other, and are listed", func() bool {
		return a.Stats().Placeable == 2 && a.Ready().Callers == roster.Check{OK: true, Reason: roster.ReasonComplete}
	})

	cut.Store(true)
	kill()
	mesh.Step(roster.LinkLost{Gateway: "gw-b"})
	mesh.Step(roster.DiscoveryFailed{Err: errors.New("no other gateway can be reached")})
	s.eventually("it is in doubt", func() bool { return a.Stats().Stale })
	require.Equal(t, 2, a.Stats().Gateways)
	s.put(slice("one", pod("gw-a", "10.0.0.1")))
	s.eventually("it is gone", func() bool { stats := a.Stats(); return stats.Gateways == 1 && !stats.Stale })
}

func TestClose(t *testing.T) {
	s := newSite(t)
	release := s.hold()
	defer release()
	w := s.start(nil)
	s.eventually("it asks", func() bool { return len(s.asked()) > 0 })
	waits := make(chan error, 1)
	go func() { waits <- w.WaitList(context.Background()) }()
	w.Close()
	w.Close()
	require.ErrorIs(t, <-waits, kube.ErrClosed)
	_, err := w.Seeds(t.Context())
	require.ErrorIs(t, err, kube.ErrClosed)
	require.Empty(t, w.told())
}

func TestStartOutsideACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := kube.Start(kube.Config{Gateway: self, Service: service}, nil)
	require.ErrorIs(t, err, rest.ErrNotInCluster)
	require.ErrorContains(t, err, "Config.Client is nil")
	_, err = kube.Start(kube.Config{Gateway: self, Service: service, Namespace: "default", Client: &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("no certificate")}}}, nil)
	require.ErrorContains(t, err, "Config.Client: ")
}

// A mesh beside the discovery says who can be reached, and not who there is.
func TestLinksOnly(t *testing.T) {
	w := new(watcher)
	links := kube.LinksOnly(w)
	for _, ev := range []roster.Event{
		roster.LinkUp{Gateway: "gw-b"},
		roster.Discovered{Gateways: []ring.GatewayID{"gw-b"}},
		roster.DiscoveryFailed{Err: errors.New("alone")},
		roster.LinkLost{Gateway: "gw-b"},
	} {
		links.Step(ev)
	}
	require.Equal(t, []roster.Event{roster.LinkUp{Gateway: "gw-b"}, roster.LinkLost{Gateway: "gw-b"}}, w.told())
}
