// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// record is what a gateway that serves these members says of itself.
func record(id string, incarnation placement.Incarnation, digest gatewayd.Digest, members ...string) gatewayd.Record {
	r := gatewayd.Record{Gateway: ring.GatewayID(id), Incarnation: incarnation, Digest: digest, Attached: len(members), Sequence: 5}
	for _, m := range members {
		r.Members = append(r.Members, gatewayd.Member{Member: ring.MemberID(m)})
	}
	return r
}

func page(id string, records ...gatewayd.Record) gatewayd.Roster {
	return gatewayd.Roster{Gateway: ring.GatewayID(id), Records: records}
}

func TestDisagreements(t *testing.T) {
	at := map[string]string{"a": "gw-1", "b": "gw-1", "c": "gw-2"}
	one, two := record("gw-1", 1, 11, "a", "b"), record("gw-2", 2, 22, "c")
	held := record("gw-2", 2, 22, "c")
	held.Members = append(held.Members, gatewayd.Member{Member: "a", Held: true})
	for _, row := range []struct {
		name  string
		pages []gatewayd.Roster
		want  []string
	}{
		{"all is the same", []gatewayd.Roster{page("gw-1", one, two), page("gw-2", one, two)}, nil},
		{"one that has ended is another matter", []gatewayd.Roster{page("gw-1", one, two, record("gw-3", 3, 33)), page("gw-2", one, two)}, nil},
		{
			"one does not know the other", []gatewayd.Roster{page("gw-1", one), page("gw-2", one, two)},
			[]string{"gw-1 does not know gw-2"},
		},
		{
			"another incarnation", []gatewayd.Roster{page("gw-1", one, record("gw-2", 1, 22, "c")), page("gw-2", one, two)},
			[]string{"gw-1 knows an incarnation of gw-2 that is not the one that runs"},
		},
		{
			"another digest", []gatewayd.Roster{page("gw-1", one, two), page("gw-2", record("gw-1", 1, 12, "a"), two)},
			[]string{"of gw-1, gw-2 has 1 attached and 0 held up to 5, and itself 2 and 0 up to 5"},
		},
		{
			"one has yet to hear that there is nobody", []gatewayd.Roster{page("gw-1", record("gw-1", 1, 0), two), page("gw-2", gatewayd.Record{Gateway: "gw-1", Incarnation: 1}, two)},
			[]string{"gw-1 does not list a", "gw-1 does not list b", "of gw-1, gw-2 has 0 attached and 0 held up to 0, and itself 0 and 0 up to 5"},
		},
		{
			"both are wrong of one", []gatewayd.Roster{page("gw-1", one, record("gw-2", 2, 22)), page("gw-2", one, record("gw-2", 2, 22))},
			[]string{"gw-2 does not list c"},
		},
		{
			"a supervisor that is elsewhere", []gatewayd.Roster{page("gw-1", one, record("gw-2", 2, 22, "b", "c")), page("gw-2", one, record("gw-2", 2, 22, "b", "c"))},
			[]string{"gw-2 lists b, which is at gw-1"},
		},
		{
			"somebody is expected back", []gatewayd.Roster{page("gw-1", one, held), page("gw-2", one, held)},
			[]string{"gw-2 still expects a back, which is at gw-1"},
		},
		{
			"no record of its own", []gatewayd.Roster{page("gw-1"), page("gw-2", one, two)},
			[]string{"gw-1 has no record of its own", "gw-1 does not know gw-1", "gw-1 does not know gw-2", "gw-2 knows an incarnation of gw-1 that is not the one that runs"},
		},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, disagreements(row.pages, at)) })
	}
}

func TestGhosts(t *testing.T) {
	now := time.Now()
	f := &fleet{
		died:     map[string]time.Time{"gw-3": now.Add(-agreedWithin - time.Second), "gw-4": now.Add(-time.Second)},
		gateways: map[string]*gateway{"gw-1": {}, "gw-2": {resumed: now.Add(-agreedWithin)}},
	}
	one, two, three, four := record("gw-1", 1, 1), record("gw-2", 1, 1), record("gw-3", 1, 1), record("gw-4", 1, 1)
	for _, row := range []struct {
		name   string
		pages  []gatewayd.Roster
		late   []string
		listed bool
	}{
		{"none", []gatewayd.Roster{page("gw-1", one, two), page("gw-2", one, two)}, nil, false},
		{"one that has just ended", []gatewayd.Roster{page("gw-1", one, two, four), page("gw-2", one, two)}, nil, true},
		{
			"one that ended long ago", []gatewayd.Roster{page("gw-1", one, three), page("gw-2", one, two)},
			[]string{"gw-1 lists gw-3, which ended, and could have been forgotten for 46s"}, true,
		},
		{"listed by one that was paused", []gatewayd.Roster{page("gw-2", two, three)}, nil, true},
		{
			"one that never was", []gatewayd.Roster{page("gw-1", one, record("gw-9", 1, 1))},
			[]string{"gw-1 lists gw-9, which nobody has started"}, true,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			late, listed := ghosts(row.pages, f.couldForget, now)
			require.Equal(t, row.late, late)
			require.Equal(t, row.listed, listed)
		})
	}
}

// gatewayPages serves the pages of a gateway that exists on paper only, and returns where.
func gatewayPages(t *testing.T, pages map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := pages[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
			text = "starting\n"
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
	})
	return strings.TrimPrefix(server.URL, "http://")
}

func TestRostersAreRead(t *testing.T) {
	want := page("gw-1", record("gw-1", 1, 11, "a"))
	text, err := json.Marshal(want)
	require.NoError(t, err)
	r := paper(config{}, "gw-1")
	r.gateways["gw-1"].ops = gatewayPages(t, map[string]string{"/roster": string(text)})
	got, err := r.rosters(t.Context())
	require.NoError(t, err)
	require.Equal(t, []gatewayd.Roster{want}, got)

	r.gateways["gw-1"].ops = gatewayPages(t, nil)
	_, err = r.rosters(t.Context())
	require.ErrorContains(t, err, "gw-1: ")
	require.ErrorContains(t, err, "starting")
}

func TestUnready(t *testing.T) {
	for _, row := range []struct {
		name  string
		takes bool
		pages map[string]string
		want  []string // contained
	}{
		{"ready", true, map[string]string{"/readyz": "ok", "/readyz/callers": "ok"}, nil},
		{"not for supervisors", true, map[string]string{"/readyz/callers": "ok"}, []string{"/readyz: 503"}},
		{"not for callers", true, map[string]string{"/readyz": "ok"}, []string{"/readyz/callers: 503"}},
		{"not in the Service", false, map[string]string{"/readyz": "ok", "/readyz/callers": "ok"}, []string{"the Service does not take gw-1"}},
		{"nothing", false, nil, []string{"/readyz: 503", "/readyz/callers: 503", "the Service"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := paper(config{}, "gw-1")
			r.gateways["gw-1"].ops = gatewayPages(t, row.pages)
			r.balance = &balancer{backends: map[string]*backend{"gw-1": {ready: row.takes}}}
			why := r.unready(t.Context())
			require.Len(t, why, len(row.want))
			for i, want := range row.want {
				require.Contains(t, why[i], want)
			}
		})
	}
}

func TestUnseen(t *testing.T) {
	r := paper(config{}, "gw-1", "gw-2")
	takes := func(text string) string {
		return gatewayPages(t, map[string]string{"/metrics": "# TYPE evenring_fleet_gateways_placeable gauge\nevenring_fleet_gateways_placeable " + text + "\n"})
	}
	r.gateways["gw-1"].ops, r.gateways["gw-2"].ops = takes("2"), takes("2")
	require.Empty(t, r.unseen(t.Context()))
	r.gateways["gw-2"].ops = takes("1")
	require.Equal(t, []string{"gw-2 would give supervisors to 1 of 2 gateways"}, r.unseen(t.Context()))
	r.gateways["gw-2"].ops = gatewayPages(t, nil)
	why := r.unseen(t.Context())
	require.Len(t, why, 1)
	require.Contains(t, why[0], "gw-2: ")
}
