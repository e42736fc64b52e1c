// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/evenring/evenring/metrics/prom"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// pages is the operator's HTTP.
func (p *process) pages() http.Handler {
	p.registry = prometheus.NewRegistry()
	p.registry.MustRegister(
		prom.NewCollector(p.gateway.Stats, p.counted.Stats),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", p.readyPage)
	mux.HandleFunc("GET /readyz/callers", p.callersPage)
	mux.HandleFunc("GET /fleet", p.fleetPage)
	mux.HandleFunc("GET /roster", p.rosterPage)
	mux.HandleFunc("GET /explain", p.explainPage)
	mux.HandleFunc("POST /settle", p.settlePage)
	return mux
}

func (p *process) readyPage(w http.ResponseWriter, _ *http.Request) {
	ready, reason := p.ready()
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, reason)
}

// ready reports whether the Service may send supervisors here, and why.
func (p *process) ready() (bool, string) {
	switch phase(p.phase.Load()) {
	case starting:
		return false, "starting"
	case aside:
		return true, "delisted"
	case draining:
		return false, "draining"
	}
	check := p.gateway.Ready().Supervisors
	return check.OK, string(check.Reason)
}

func (p *process) fleetPage(w http.ResponseWriter, _ *http.Request) {
	printFleet(w, p.gateway.ID(), p.gateway.Stats(), p.gateway.Gateways(), p.gateway.Disagreeing())
}

// printFleet writes the fleet as one gateway sees it. odd are those that compute other rings.
func printFleet(w io.Writer, self ring.GatewayID, s redirect.Stats, fleet []placement.Gateway, odd []ring.GatewayID) {
	fmt.Fprintf(w, "live %d, cap %d, skew %.3f, %d of %d gateways placeable, view %v old", s.Live, s.Cap, s.Skew, s.Placeable, s.Gateways, s.ViewAge.Round(time.Millisecond))
	if s.Stale {
		fmt.Fprint(w, " and stale")
	}
	fmt.Fprint(w, "\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GATEWAY\tSTATE\tATTACHED\tHELD\tRESERVED\tENDPOINT")
	for _, g := range fleet {
		id, state := string(g.ID), g.State.String()
		if g.ID == self {
			id += " (this)"
		}
		if g.Suspect {
			state += ", suspect"
		}
		if slices.Contains(odd, g.ID) {
			state += ", another ring"
		}
		if g.Known {
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\n", id, state, g.Attached, g.Held, g.Reserved, g.Endpoint)
		} else {
			fmt.Fprintf(table, "%s\t%s\t?\t?\t?\t%s\n", id, state, g.Endpoint)
		}
	}
	_ = table.Flush() // a reader that has gone needs no page
}

// showJSON answers with a page for programs.
func showJSON(w http.ResponseWriter, code int, page any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(page) // a reader that has gone needs no page
}

// explainPage tells where a member would be placed now: for a person, or with format=json as a
// [placement.Explanation].
func (p *process) explainPage(w http.ResponseWriter, r *http.Request) {
	member := ring.MemberID(r.FormValue("member"))
	if member == "" {
		http.Error(w, "whom? say /explain?member=ID", http.StatusBadRequest)
		return
	}
	switch format := r.FormValue("format"); format {
	case "":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8") // whatever the member's ID looks like
		fmt.Fprint(w, p.gateway.Explain(member))
	case "json":
		showJSON(w, http.StatusOK, p.gateway.Explain(member))
	default:
		http.Error(w, fmt.Sprintf("format is %q; it may be json, or be left out", format), http.StatusBadRequest)
	}
}
