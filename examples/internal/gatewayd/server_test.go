// SPDX-License-Identifier: Apache-2.0

package gatewayd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/tlsflags"
	"github.com/evenring/evenring/examples/internal/tlsflags/tlstest"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/placement/roster/gossip"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

func TestServes(t *testing.T) {
	a := ready(t, quick("a"))
	require.Equal(t, "a", a.where.Gateway)
	code, body := a.get("/readyz")
	require.Equal(t, http.StatusOK, code, body)
	code, _ = a.get("/healthz")
	require.Equal(t, http.StatusOK, code)

	verdict, _ := plain(t).attach(a.where.Endpoint, "edge-1")
	require.Equal(t, ring.GatewayID("a"), verdict.Gateway)
	require.Equal(t, a.where.Endpoint, verdict.Endpoint)
	_, logged := a.log.line("level=INFO", "msg=admission", "member=edge-1", "outcome=accept", "reason=placed", "gateway=a", "asks=0", "load=0", "cap=1")
	require.True(t, logged, a.log)
}

// The two gauges that matter: supervisors served, and the most sessions on one of them.
func TestMetrics(t *testing.T) {
	a := ready(t, quick("a"))
	for m, sessions := range map[ring.MemberID]int{"edge-1": 1, "edge-2": 3} {
		plain(t).attach(a.where.Endpoint, m)
		for i := range sessions {
			verdict, _ := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: m, Session: redirect.SessionID(fmt.Sprint("session-", i))})
			require.Equal(t, redirect.Accept, verdict.Outcome)
		}
	}
	code, body := a.get("/metrics")
	require.Equal(t, http.StatusOK, code)
	for _, line := range []string{
		"\nevenring_supervisors_served 2\n",
		"\nevenring_sessions_per_supervisor_max 3\n",
		"\nevenring_verdicts_total{outcome=\"accept\",reason=\"session\"} 4\n",
		"\ngo_goroutines ",
		"\nprocess_start_time_seconds ",
	} {
		require.Contains(t, body, line)
	}
}

func TestPages(t *testing.T) {
	a := ready(t, quick("a"))
	plain(t).attach(a.where.Endpoint, "edge-1")
	_, body := a.get("/fleet")
	require.Contains(t, body, "live 1, cap 1, skew 1.000, 1 of 1 gateways placeable")
	require.Regexp(t, `a \(this\) +ready +1 +0 +0 +127\.0\.0\.1:`, body)

	code, body := a.get("/explain?member=edge-2")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "edge-2 -> a (owner): 2 live")

	code, body = a.get("/explain?member=edge-2&format=json")
	require.Equal(t, http.StatusOK, code)
	var told placement.Explanation
	require.NoError(t, json.Unmarshal([]byte(body), &told))
	require.Equal(t, placement.Request{Member: "edge-2"}, told.Request)
	require.Equal(t, ring.GatewayID("a"), told.Decision.Gateway)
	require.Equal(t, placement.Owner, told.Decision.Reason)
	require.Equal(t, 2, told.Live)
	require.Equal(t, placement.WhyChosen, told.Walk[told.Rank].Why)
	require.Equal(t, placement.Ready, told.Walk[told.Rank].Gateway.State)
	require.NotZero(t, told.Decision.Incarnation)

	code, body = a.get("/explain?member=edge-2&format=yaml")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, `format is "yaml"`)
	code, body = a.get("/explain")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "member")
	code, _ = a.get("/nowhere")
	require.Equal(t, http.StatusNotFound, code)
}

// Two gateways find each other by a seed, and one sends on what belongs to the other.
func TestTwoGatewaysShare(t *testing.T) {
	all := fleet(t, quick("a"), quick("b"))
	for i := range 10 {
		plain(t).attach(all[0].where.Endpoint, ring.MemberID(fmt.Sprint("edge-", i)))
	}
	for _, g := range all {
		g.shows("/metrics", "\nevenring_supervisors_served 5\n")
	}
	_, logged := all[0].log.line("outcome=redirect", "gateway=b", "asks=1")
	require.True(t, logged, all[0].log)
}

// A gateway of another build, or with another configuration, joins: an operator
// sees it on the page, in the metrics and in the log, until it is put right.
func TestAnotherRingShows(t *testing.T) {
	a := ready(t, quick("a"))
	join := func(slots int) (leave func()) {
		b, err := redirect.NewGateway(redirect.Config{
			Gateway: "b", Incarnation: placement.Incarnation(time.Now().UnixNano()), Endpoint: "127.0.0.1:9",
			Roster: roster.Config{Ring: ring.Config{Slots: slots}},
		}, redirect.Hooks{})
		require.NoError(t, err)
		mesh, err := gossip.Join(t.Context(), gossip.Config{
			Gateway: "b", Incarnation: b.Incarnation(), Bind: "127.0.0.1:0", Seeds: []string{a.where.Gossip},
		}, b)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx, mesh) })
		leave = sync.OnceFunc(func() { stop(); running.Wait(); _ = mesh.Close() })
		t.Cleanup(leave)
		return leave
	}
	leave := join(4093)
	a.shows("/fleet", " ready, another ring ")
	a.shows("/metrics", "\nevenring_ring_mismatches 1\n")
	logged := func() bool { _, ok := a.log.line("level=WARN", "gateway=b", "other rings"); return ok }
	require.Eventually(t, logged, patience, 10*time.Millisecond)

	leave()
	join(0)
	a.shows("/metrics", "\nevenring_ring_mismatches 0\n")
	_, body := a.get("/fleet")
	require.NotContains(t, body, "another ring")
	require.Equal(t, 1, strings.Count(a.log.String(), "other rings"))
}

func TestDrainHandsOver(t *testing.T) {
	all := fleet(t, quick("a"), quick("b"))
	a, b := all[0], all[1]
	_, stream := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true})
	require.NotNil(t, stream)
	_, session := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", Session: "session-1"})
	require.NotNil(t, session)

	a.Drain()
	a.Drain() // says nothing new
	a.event(report.Draining)
	notice := told(t, stream)
	require.Equal(t, redirect.NoticeMove, notice.Kind)
	require.Equal(t, ring.GatewayID("b"), notice.Gateway)
	require.Equal(t, b.where.Endpoint, notice.Endpoint)

	// The drain is under way: it is alive, takes nobody new, and serves what it has.
	code, body := a.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "draining\n", body)
	code, _ = a.get("/healthz")
	require.Equal(t, http.StatusOK, code)
	verdict, _ := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-2", CanRedirect: true, Stay: true})
	require.Equal(t, redirect.Redirect, verdict.Outcome)
	require.Equal(t, redirect.ReasonDraining, verdict.Reason)
	_, body = a.get("/metrics")
	require.Contains(t, body, "\nevenring_draining 1\n")
	require.Contains(t, body, "\nevenring_supervisors_served 1\n")

	_, moved := plain(t).dial(notice.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true, Hops: 1, Cap: notice.Cap})
	require.NotNil(t, moved)
	require.NoError(t, stream.Close())
	end := told(t, session)
	require.Equal(t, redirect.NoticeEnd, end.Kind)
	require.Equal(t, redirect.ReasonStopped, end.Reason)
	drained := a.event(report.Drained)
	require.Equal(t, 1, drained.Moved)
	require.Zero(t, drained.Closed)
	require.Zero(t, drained.Left)
	require.NoError(t, a.end())
	b.shows("/fleet", " 1 of 1 gateways placeable")
}

// Nobody to hand over: gone in a moment, whatever the drain would take.
func TestDrainOfNobody(t *testing.T) {
	cfg := gatewayd.Config{ID: "a", Propagation: 5 * patience, KillAfter: 10 * patience}
	a := ready(t, cfg)
	a.Drain()
	a.event(report.Draining)
	a.event(report.Drained)
	require.NoError(t, a.end())
}

func TestDrainWhileStarting(t *testing.T) {
	cfg := quick("a")
	cfg.Join = []string{"127.0.0.1:9"} // nobody is there
	cfg.PeerWait = 5 * patience
	a := start(t, cfg)
	code, body := a.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "starting\n", body)
	a.Drain()
	a.event(report.Draining)
	a.event(report.Drained)
	require.NoError(t, a.end())
}

// Peers that never answer do not keep a gateway from serving.
func TestReadyWithoutPeers(t *testing.T) {
	cfg := quick("a")
	cfg.Join = []string{"127.0.0.1:9"}
	cfg.PeerWait = 1 // as good as none
	a := ready(t, cfg)
	code, body := a.get("/readyz")
	require.Equal(t, http.StatusOK, code, body)
	_, logged := a.log.line("level=WARN", "serving without having heard every peer")
	require.True(t, logged, a.log)
}

func TestStopAtOnce(t *testing.T) {
	enough := errors.New("enough")
	t.Run("serving", func(t *testing.T) {
		a := ready(t, quick("a"))
		_, stream := plain(t).attach(a.where.Endpoint, "edge-1")
		a.cancel(enough)
		require.Equal(t, redirect.ReasonStopped, told(t, stream).Reason)
		require.ErrorIs(t, a.end(), enough)
	})
	t.Run("draining", func(t *testing.T) {
		a := ready(t, gatewayd.Config{ID: "a", Propagation: 5 * patience, KillAfter: 10 * patience})
		_, stream := plain(t).attach(a.where.Endpoint, "edge-1")
		a.Drain()
		a.event(report.Draining)
		a.cancel(enough)
		require.Equal(t, redirect.ReasonStopped, told(t, stream).Reason)
		require.ErrorIs(t, a.end(), enough)
	})
}

func TestExpiredCredentialsEndStreams(t *testing.T) {
	ca := tlstest.NewAuthority(t)
	cfg := quick("a")
	cfg.TLS = ca.Issue(t, "a")
	client := secure(t, ca.Issue(t, "client"))
	a := ready(t, cfg)
	_, supervisor := client.attach(a.where.Endpoint, "edge-1")
	_, session := client.dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", Session: "session-1"})

	// The new files are not in order: nobody could come back.
	good, err := os.ReadFile(cfg.TLS.Cert)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cfg.TLS.Cert, []byte("rubbish"), 0o600))
	a.Expire()
	require.Eventually(t, func() bool { _, ok := a.log.line("level=ERROR", "credentials", "-tls-cert"); return ok }, patience, 10*time.Millisecond)
	_, body := a.get("/metrics")
	require.Contains(t, body, "\nevenring_supervisors_served 1\n")

	require.NoError(t, os.WriteFile(cfg.TLS.Cert, good, 0o600))
	a.Expire()
	for _, s := range []redirect.Stream{supervisor, session} {
		notice := told(t, s)
		require.Equal(t, redirect.NoticeEnd, notice.Kind)
		require.Equal(t, redirect.ReasonExpired, notice.Reason)
	}
	verdict, _ := client.dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true})
	require.Equal(t, redirect.Accept, verdict.Outcome)
}

func TestTLS(t *testing.T) {
	ca, other := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	own := ca.Issue(t, "a")
	oneSided := own
	oneSided.CA = ""
	trusting := tlsflags.Flags{CA: own.CA}
	impostor := other.Issue(t, "impostor")
	impostor.CA = own.CA
	for name, row := range map[string]struct {
		server   tlsflags.Flags
		admitted map[string]tlsflags.Flags
		refused  map[string]tlsflags.Flags
	}{
		"one-sided": {
			server:   oneSided,
			admitted: map[string]tlsflags.Flags{"without a certificate": trusting, "with one": ca.Issue(t, "client")},
			refused:  map[string]tlsflags.Flags{"plaintext": {}, "trusts another authority": other.Issue(t, "client")},
		},
		"mutual": {
			server:   own,
			admitted: map[string]tlsflags.Flags{"with a certificate": ca.Issue(t, "client")},
			refused:  map[string]tlsflags.Flags{"plaintext": {}, "without a certificate": trusting, "of another authority": impostor},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := quick("a")
			cfg.TLS = row.server
			a := ready(t, cfg)
			for name, client := range row.admitted {
				t.Run(name, func(t *testing.T) { secure(t, client).attach(a.where.Endpoint, "edge-1") })
			}
			for name, client := range row.refused {
				t.Run(name, func(t *testing.T) {
					_, _, err := secure(t, client).try(a.where.Endpoint, redirect.Hello{Member: "edge-1"})
					require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
				})
			}
		})
	}
}

// With mutual TLS the link between gateways uses the same certificates.
func TestMutualTLSBetweenGateways(t *testing.T) {
	ca := tlstest.NewAuthority(t)
	a, b := quick("a"), quick("b")
	a.TLS, b.TLS = ca.Issue(t, "a"), ca.Issue(t, "b")
	a.GossipKey = []byte("0123456789abcdef")
	b.GossipKey = a.GossipKey
	all := fleet(t, a, b)
	client := secure(t, ca.Issue(t, "client"))
	for i := range 4 {
		client.attach(all[0].where.Endpoint, ring.MemberID(fmt.Sprint("edge-", i)))
	}
	for _, g := range all {
		g.shows("/metrics", "\nevenring_supervisors_served 2\n")
		g.shows("/metrics", "\nevenring_ask_failures_total 0\n")
	}
}

// A process that starts under the ID of a live one takes its place.
func TestSuperseded(t *testing.T) {
	older := ready(t, quick("a"))
	newer := quick("a")
	newer.Join = []string{older.where.Gossip}
	newcomer := ready(t, newer)
	plain(t).attach(newcomer.where.Endpoint, "edge-1") // of which every process is told
	older.event(report.Draining)
	older.event(report.Drained)
	require.ErrorIs(t, older.end(), gatewayd.ErrSuperseded)
	code, body := newcomer.get("/readyz")
	require.Equal(t, http.StatusOK, code, body)
}

func TestPortInUse(t *testing.T) {
	a := ready(t, quick("a"))
	for name, change := range map[string]func(*gatewayd.Config){
		"-listen": func(c *gatewayd.Config) { c.Listen = a.where.Endpoint },
		"-ops":    func(c *gatewayd.Config) { c.Ops = a.where.Ops },
		"-gossip": func(c *gatewayd.Config) { c.Gossip = a.where.Gossip },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := gatewayd.Config{ID: "b", Listen: "127.0.0.1:0", Gossip: "127.0.0.1:0", Ops: "127.0.0.1:0"}
			change(&cfg)
			server, err := gatewayd.New(cfg)
			require.NoError(t, err)
			require.ErrorContains(t, server.Run(t.Context()), name)
		})
	}
}
