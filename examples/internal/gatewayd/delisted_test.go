// SPDX-License-Identifier: Apache-2.0

package gatewayd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// directory serves the one slice of the Service peers, as Kubernetes does: a
// list, and a stream of what changes.
type directory struct {
	kubeconfig string

	mu      sync.Mutex
	version int
	pods    []string
	changed chan struct{} // closed with the next change
}

func newDirectory(t *testing.T, pods ...string) *directory {
	t.Helper()
	d := &directory{version: 1, pods: pods, changed: make(chan struct{})}
	server := httptest.NewServer(d)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	d.kubeconfig = filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(d.kubeconfig, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
current-context: one
clusters: [{name: one, cluster: {server: %q}}]
contexts: [{name: one, context: {cluster: one, namespace: edge}}]
`, server.URL), 0o600))
	return d
}

// list says who there is from now on.
func (d *directory) list(pods ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version++
	d.pods = pods
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *directory) slice() (discoveryv1.EndpointSlice, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	slice := discoveryv1.EndpointSlice{
		TypeMeta:   metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "one", ResourceVersion: strconv.Itoa(d.version)},
	}
	for _, name := range d.pods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{"127.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name},
		})
	}
	return slice, d.changed
}

func (d *directory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	slice, changed := d.slice()
	switch {
	case query.Get("sendInitialEvents") == "true":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		})
	case query.Get("watch") == "true":
		w.WriteHeader(http.StatusOK)
		for {
			if slice.ResourceVersion != query.Get("resourceVersion") {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": slice})
			}
			w.(http.Flusher).Flush()
			select {
			case <-changed:
				slice, changed = d.slice()
			case <-r.Context().Done():
				return
			}
		}
	default:
		_ = json.NewEncoder(w).Encode(discoveryv1.EndpointSliceList{
			TypeMeta: metav1.TypeMeta{Kind: "EndpointSliceList", APIVersion: "discovery.k8s.io/v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: slice.ResourceVersion},
			Items:    []discoveryv1.EndpointSlice{slice},
		})
	}
}

// gateway is one that this directory lists, and that does not wait long before it believes that it is not.
func (d *directory) gateway(id ring.GatewayID) gatewayd.Config {
	cfg := quick(id)
	cfg.KubeService, cfg.Kubeconfig, cfg.Join = "peers", d.kubeconfig, []string{"127.0.0.1:1"}
	cfg.DelistGrace = 1
	return cfg
}

// listedPair is two gateways that are listed and know each other.
func listedPair(t *testing.T, change ...func(*gatewayd.Config)) (d *directory, a, b *running) {
	t.Helper()
	d = newDirectory(t, "a", "b")
	one, other := d.gateway("a"), d.gateway("b")
	for _, f := range change {
		f(&one)
	}
	a = start(t, one)
	other.Join = []string{a.where.Gossip}
	b = ready(t, other)
	a.event(report.Ready)
	for _, g := range []*running{a, b} {
		g.shows("/fleet", " 2 of 2 gateways placeable")
		require.Eventually(t, func() bool { _, ok := g.log.line("gateways listed", "gateways=2"); return ok }, patience, 10*time.Millisecond)
	}
	return d, a, b
}

// S62: discovery drops a, which learns it and hands over, and closes nothing;
// b sends nobody there. Listed again it serves again.
func TestS62(t *testing.T) {
	t.Parallel()
	d, a, b := listedPair(t)
	_, stream := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true})
	require.NotNil(t, stream)
	_, old := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "old"})
	require.NotNil(t, old)
	a.shows("/metrics", "\nevenring_delisted 0\n")

	d.list("b")
	a.event(report.Draining)
	notice := told(t, stream)
	require.Equal(t, redirect.NoticeMove, notice.Kind)
	require.Equal(t, redirect.ReasonDraining, notice.Reason)
	require.Equal(t, ring.GatewayID("b"), notice.Gateway)
	code, body := a.get("/readyz")
	require.Equal(t, http.StatusOK, code, "or what lists the ready only would never list it again")
	require.Equal(t, "delisted\n", body)
	_, body = a.get("/metrics")
	require.Contains(t, body, "\nevenring_delisted 1\n")
	require.Contains(t, body, "\nevenring_draining 1\n")
	b.shows("/fleet", " 1 of 2 gateways placeable")
	b.shows("/metrics", "\nevenring_delisted 0\n")
	_, logged := a.log.line("level=WARN", "discovery has dropped this gateway")
	require.True(t, logged, a.log)

	_, moved := plain(t).dial(notice.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true, Hops: 1, Cap: notice.Cap})
	require.NotNil(t, moved)
	require.NoError(t, stream.Close())
	drained := a.event(report.Drained)
	require.Equal(t, 1, drained.Moved)
	require.Zero(t, drained.Closed)
	require.Equal(t, 1, drained.Left)
	verdict, _ := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-2", CanRedirect: true, Stay: true})
	require.Equal(t, redirect.Redirect, verdict.Outcome, "whoever comes all the same is sent on")
	require.Equal(t, ring.GatewayID("b"), verdict.Gateway)
	a.shows("/metrics", "\nevenring_supervisors_served 1\n") // the old client has its stream

	d.list("a", "b")
	a.event(report.Ready)
	code, body = a.get("/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "serving\n", body)
	for _, g := range []*running{a, b} {
		g.shows("/fleet", " 2 of 2 gateways placeable")
		g.shows("/metrics", "\nevenring_delisted 0\n")
	}
	verdict, _ = plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-3", CanRedirect: true, Stay: true})
	require.Equal(t, redirect.Accept, verdict.Outcome)
	a.shows("/metrics", "\nevenring_supervisors_served 2\n")

	d.list("b") // and once more
	a.event(report.Draining)
}

// Listed again while supervisors are told to move: those who have not moved stay.
func TestListedAgain(t *testing.T) {
	t.Parallel()
	d, a, b := listedPair(t)
	_, stream := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true})
	d.list("b")
	a.event(report.Draining)
	require.Equal(t, redirect.NoticeMove, told(t, stream).Kind)
	d.list("a", "b")
	a.event(report.Ready)
	b.shows("/fleet", " 2 of 2 gateways placeable")
	_, body := a.get("/metrics")
	require.Contains(t, body, "\nevenring_supervisors_served 1\n")
	require.Contains(t, body, "\nevenring_draining 0\n")
}

// A list without it is not believed at once.
func TestDelistedForAMoment(t *testing.T) {
	t.Parallel()
	d, a, _ := listedPair(t, func(cfg *gatewayd.Config) { cfg.DelistGrace = 10 * patience })
	d.list("b")
	a.shows("/metrics", "\nevenring_delisted 1\n")
	code, body := a.get("/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "serving\n", body)
	verdict, _ := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true})
	require.Equal(t, redirect.Redirect, verdict.Outcome, "newcomers are placed elsewhere from the first moment")
	verdict, _ = plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-2", CanRedirect: true, Stay: true})
	require.Equal(t, redirect.Accept, verdict.Outcome, "and whoever asks to stay, stays")
	d.list("a", "b")
	a.shows("/metrics", "\nevenring_delisted 0\n")
	_, drained := a.log.line("standing aside")
	require.False(t, drained)
}

// Dropped by discovery, and the only one there is: it serves as long as that is so.
func TestDelistedAndAlone(t *testing.T) {
	t.Parallel()
	d := newDirectory(t, "a")
	one := d.gateway("a")
	one.PeerWait = 1
	a := ready(t, one)
	require.Eventually(t, func() bool { _, ok := a.log.line("gateways listed", "gateways=1"); return ok }, patience, 10*time.Millisecond)
	d.list("b")
	a.shows("/metrics", "\nevenring_delisted 1\n")
	verdict, stream := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true})
	require.Equal(t, redirect.Accept, verdict.Outcome)
	_, body := a.get("/readyz")
	require.Equal(t, "serving\n", body)

	other := d.gateway("b")
	other.Join = []string{a.where.Gossip}
	b := ready(t, other)
	a.event(report.Draining)
	require.Equal(t, redirect.NoticeMove, told(t, stream).Kind)
	b.cancel(errors.New("enough"))
	a.event(report.Ready)
	verdict, _ = plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-2", CanRedirect: true})
	require.Equal(t, redirect.Accept, verdict.Outcome)
	_, body = a.get("/metrics")
	require.Contains(t, body, "\nevenring_supervisors_served 2\n")
}

// Told to stop while it stands aside: it hands over what is left, in the time that a stop has.
func TestStopWhileAside(t *testing.T) {
	t.Run("handing over", func(t *testing.T) {
		t.Parallel()
		d, a, _ := listedPair(t)
		_, stream := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true})
		d.list("b")
		a.event(report.Draining)
		require.Equal(t, redirect.NoticeMove, told(t, stream).Kind)
		a.Drain()
		a.event(report.Draining)
		notice := told(t, stream)
		require.Equal(t, redirect.NoticeMove, notice.Kind, "it is told again")
		code, body := a.get("/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "draining\n", body)
		_, moved := plain(t).dial(notice.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true, Hops: 1, Cap: notice.Cap})
		require.NotNil(t, moved)
		require.NoError(t, stream.Close())
		require.Equal(t, 1, a.event(report.Drained).Moved)
		require.NoError(t, a.end())
	})
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		d, a, _ := listedPair(t)
		d.list("b")
		a.event(report.Draining)
		a.event(report.Drained)
		a.Drain()
		a.event(report.Draining)
		a.event(report.Drained)
		require.NoError(t, a.end())
	})
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		enough := errors.New("enough")
		d, a, _ := listedPair(t)
		_, stream := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: "edge-1", CanRedirect: true, Stay: true})
		d.list("b")
		a.event(report.Draining)
		require.Equal(t, redirect.NoticeMove, told(t, stream).Kind)
		a.cancel(enough)
		require.Equal(t, redirect.ReasonStopped, told(t, stream).Reason)
		require.ErrorIs(t, a.end(), enough)
	})
}
