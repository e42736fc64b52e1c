// SPDX-License-Identifier: Apache-2.0

package redirect_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/internal/script"
	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// The scripts are conversations of whole fleets: real machines, virtual time.
//
//	world [no-asks] [seed=N]          begin; no-asks: without a peer link
//	mute                              no roster message arrives from now on
//	gateways A B ...                  start gateways
//	at A 10                           start ten supervisors and put them on A
//	arrive N | arrive s1 s2 ...       start supervisors, all at once, through the Service
//	restart all | A | s1 ...          kill all, those that A serves, or these, and start them again at once
//	kill G | stop G | drain G         end a gateway: without a word, with a word, or after handing over
//	out G                             take a gateway out of the Service
//	refresh                           every gateway ends every stream, as expired credentials do
//	run 5s                            let time pass
//	settle                            let time pass until everybody has a stream, a minute at most
//	show                              who serves how many, and what happened since the last show
//	homes                             who is where
//	explain s1 A                      why A would place s1 where it would
func TestScenarios(t *testing.T) {
	script.Run(t, "testdata/scenarios/*.txt", func(t *testing.T) func(string, []string) string {
		f := &fleet{t: t}
		return f.command
	})
}

type fleet struct {
	t     *testing.T
	w     *sim.World
	n     int // supervisors started so far
	moves map[ring.MemberID]int
}

func (f *fleet) command(name string, args []string) string {
	switch name {
	case "world":
		cfg := sim.Config{NoAsks: slices.Contains(args, "no-asks")}
		for _, a := range args {
			if text, ok := strings.CutPrefix(a, "seed="); ok {
				_, err := fmt.Sscan(text, &cfg.Seed)
				require.NoError(f.t, err)
			}
		}
		f.w, f.moves = sim.New(cfg), map[ring.MemberID]int{}
	case "mute":
		f.w.Mute = true
	case "gateways":
		for _, id := range args {
			f.w.StartGateway(ring.GatewayID(id))
		}
		f.w.Run(time.Second)
	case "at":
		for _, m := range f.newMembers(args[1]) {
			f.w.StartAt(m, f.gateway(args[0]))
		}
		f.w.Run(time.Second)
	case "arrive":
		for _, m := range f.members(args) {
			f.w.StartSupervisor(m)
		}
	case "restart":
		members := f.members(args)
		for _, m := range members {
			f.w.Supervisors[m].Kill()
		}
		for _, m := range members {
			f.w.StartSupervisor(m)
		}
	case "kill":
		f.gateway(args[0]).Kill()
	case "stop":
		f.gateway(args[0]).Stop()
	case "out":
		f.gateway(args[0]).InService = false
	case "drain":
		g := f.gateway(args[0])
		if err := g.Drain(handoff.Config{}); err != nil {
			return err.Error()
		}
	case "refresh":
		for _, id := range f.w.GatewayIDs() {
			f.w.Gateways[id].EndAll(redirect.ReasonExpired)
		}
	case "run":
		d, err := time.ParseDuration(args[0])
		require.NoError(f.t, err)
		f.w.Run(d)
	case "settle":
		if !f.w.Until(time.Minute, f.w.Settled) {
			return "not settled after a minute"
		}
		f.w.Run(time.Second)
	case "show":
		return f.show()
	case "homes":
		return f.homes()
	case "explain":
		return f.gateway(args[1]).Admission.Explain(f.w.Now(), ring.MemberID(args[0])).String()
	default:
		f.t.Fatalf("no such command: %s", name)
	}
	return ""
}

func (f *fleet) gateway(id string) *sim.Gateway {
	g := f.w.Gateways[ring.GatewayID(id)]
	require.NotNil(f.t, g, "gateway %s", id)
	return g
}

func (f *fleet) newMembers(count string) []ring.MemberID {
	var n int
	_, err := fmt.Sscan(count, &n)
	require.NoError(f.t, err)
	all := make([]ring.MemberID, n)
	for i := range all {
		f.n++
		all[i] = ring.MemberID(fmt.Sprint("s", f.n))
	}
	return all
}

func (f *fleet) members(args []string) []ring.MemberID {
	switch {
	case args[0] == "all":
		return f.w.MemberIDs()
	case f.w.Gateways[ring.GatewayID(args[0])] != nil:
		var all []ring.MemberID
		for _, s := range f.gateway(args[0]).Admission.Supervisors() {
			all = append(all, s.Member)
		}
		return all
	case args[0][0] >= '0' && args[0][0] <= '9':
		return f.newMembers(args[0])
	default:
		var all []ring.MemberID
		for _, a := range args {
			all = append(all, ring.MemberID(a))
		}
		return all
	}
}

func (f *fleet) show() string {
	var b strings.Builder
	served := f.w.Served()
	for _, id := range f.w.GatewayIDs() {
		if n, ok := served[id]; ok {
			fmt.Fprintf(&b, "%s:%d ", id, n)
		}
	}
	moved, most, dials, gap := 0, 0, 0, time.Duration(0)
	for m, s := range f.w.Supervisors {
		if n := s.Moves - f.moves[m]; n > 0 {
			moved++
			most = max(most, n)
		}
		f.moves[m] = s.Moves
		dials = max(dials, s.Dials)
		gap = max(gap, s.Gap)
		s.Dials, s.Gap = 0, 0
	}
	fmt.Fprintf(&b, "spread %d, moved %d (each at most %d times), dials at most %d, ", f.w.Spread(), moved, most, dials)
	if gap == 0 {
		b.WriteString("no gap")
	} else {
		fmt.Fprintf(&b, "gap at most %v", gap.Round(time.Millisecond))
	}
	for _, id := range f.w.GatewayIDs() {
		if r := f.w.Gateways[id].Report; r.Served() > 0 {
			fmt.Fprintf(&b, "\n%s handed over: moved %d, closed %d, left behind %d", id, len(r.Moved), len(r.Closed), len(r.Left))
		}
	}
	return b.String()
}

func (f *fleet) homes() string {
	at := map[ring.GatewayID][]string{}
	for _, m := range f.w.MemberIDs() {
		s := f.w.Supervisors[m]
		at[s.Machine.Home().Gateway] = append(at[s.Machine.Home().Gateway], string(m))
	}
	var b strings.Builder
	for _, id := range f.w.GatewayIDs() {
		if len(at[id]) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", id, strings.Join(at[id], " "))
		}
	}
	return b.String()
}
