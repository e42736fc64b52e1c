// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

func (f *fleet) show([]string) (string, error) {
	var b strings.Builder
	a, attached := &f.account, 0
	for _, g := range f.processes() {
		n := len(g.Admission.Supervisors())
		older := map[bool]string{true: "(older)"}[f.w.Gateways[g.ID] != g]
		fmt.Fprintf(&b, "%s%s:%d ", g.ID, older, n)
		attached += n
	}
	fmt.Fprintf(&b, "spread %d, %d of %d attached\n", f.w.Spread(), attached, f.running())

	moved, most, dials, gap := 0, 0, 0, time.Duration(0)
	for m, s := range f.w.Supervisors {
		if n := s.Moves - a.moves[m]; n > 0 {
			moved++
			most = max(most, n)
		}
		a.moves[m] = s.Moves
		dials, gap = max(dials, s.Dials), max(gap, s.Gap)
		s.Dials, s.Gap = 0, 0
	}
	b.WriteString(times(moved, most))
	fmt.Fprintf(&b, ", dials at most %d, ", dials)
	if gap == 0 {
		b.WriteString("no gap\n")
	} else {
		fmt.Fprintf(&b, "gap at most %v\n", gap.Round(time.Millisecond))
	}

	a.cap(f.all)
	fmt.Fprintf(&b, "redirected %v, refused %v, told to move %v, told to end %v, above the cap %v\n", a.redirected, a.refused, a.moved, a.ended, a.aboveCap)
	for _, g := range f.all {
		if r := g.Report; r.Took > 0 && a.reported[g] != r.Took {
			a.reported[g] = r.Took
			r.Took = r.Took.Round(time.Millisecond)
			fmt.Fprintf(&b, "%s %s", g.ID, r)
			b.WriteString(leftBehind(r.Left) + "\n")
		}
	}
	for _, line := range a.ignored {
		fmt.Fprintln(&b, line)
	}
	a.forget()
	return b.String(), nil
}

// leftBehind names those that a drain has left, or only the causes if they are many.
func leftBehind(all []handoff.LeftBehind) string {
	const few = 12
	var parts []string
	causes := make(map[handoff.Cause]int)
	for _, one := range all {
		parts = append(parts, fmt.Sprintf("%s %s", one.Member, one.Cause))
		causes[one.Cause]++
	}
	if len(all) > few {
		parts = nil
		for _, c := range slices.Sorted(maps.Keys(causes)) {
			parts = append(parts, fmt.Sprintf("%d %s", causes[c], c))
		}
	}
	if parts == nil {
		return ""
	}
	return "; left: " + strings.Join(parts, ", ")
}

// times says how many have moved, and how often.
func times(moved, most int) string {
	switch {
	case moved == 0:
		return "nobody moved"
	case most == 1:
		return fmt.Sprintf("%d moved, once each", moved)
	default:
		return fmt.Sprintf("%d moved, up to %d times", moved, most)
	}
}

func (f *fleet) homes(args []string) (string, error) {
	at := make(map[ring.GatewayID][]string)
	if len(args) == 0 {
		for _, g := range f.live() {
			for _, s := range g.Admission.Supervisors() {
				at[g.ID] = append(at[g.ID], string(s.Member))
			}
		}
		return lines(at), nil
	}
	g, err := f.alive(args[0])
	if err != nil {
		return "", err
	}
	r := g.Admission.Roster()
	for one := range r.Gateways() {
		at[one.ID] = nil
		for e := range r.Members(one.ID) {
			if home, _, _ := r.Home(e.Member); home == one.ID {
				at[one.ID] = append(at[one.ID], string(e.Member)+map[bool]string{true: "?"}[e.Held])
			}
		}
	}
	return lines(at), nil
}

// lines writes who is where: a line for each gateway, members by their numbers.
func lines(at map[ring.GatewayID][]string) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(at)) {
		slices.SortFunc(at[id], func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) })
		fmt.Fprintf(&b, "%s: %s\n", id, cmp.Or(strings.Join(at[id], " "), "nobody"))
	}
	return b.String()
}

func (f *fleet) view(args []string) (string, error) {
	g, err := f.alive(args[0])
	if err != nil {
		return "", err
	}
	var b strings.Builder
	r, s := g.Admission.Roster(), g.Admission.Stats(g.Now())
	for one := range r.Gateways() {
		fmt.Fprintf(&b, "%s at %s: %s, %d attached, %d held, %d reserved", one.ID, one.Endpoint, one.State, one.Attached, one.Held, one.Reserved)
		if one.Suspect {
			b.WriteString(", gets nobody")
		}
		if one.ID == g.ID && r.Delisted() {
			b.WriteString(", dropped by discovery")
		}
		b.WriteByte('\n')
	}
	var owners []string
	for _, id := range r.Ring().Gateways() {
		owners = append(owners, string(id))
	}
	fmt.Fprintf(&b, "%d live on %d placeable, cap %d; ring: %s; %s\n", s.Live, s.Placeable, s.Cap, strings.Join(owners, " "),
		map[bool]string{true: "stale", false: "fresh"}[s.Stale])
	fmt.Fprintln(&b, picture(g).Balance())
	return b.String(), nil
}

func (f *fleet) ready(args []string) (string, error) {
	var b strings.Builder
	all, err := f.gateways(args)
	for _, g := range all {
		r := g.Admission.Roster().Ready(g.Now())
		fmt.Fprintf(&b, "%s: supervisors %s, callers %s\n", g.ID, check(r.Supervisors), check(r.Callers))
	}
	return b.String(), err
}

func check(c roster.Check) string {
	return map[bool]string{true: "yes", false: "no"}[c.OK] + " (" + string(c.Reason) + ")"
}

func (f *fleet) explain(args []string) (string, error) {
	g, err := f.alive(args[1])
	if err != nil {
		return "", err
	}
	return g.Admission.Explain(g.Now(), ring.MemberID(args[0])).String(), nil
}

func (f *fleet) call(args []string) (string, error) {
	if err := word(args, "at"); err != nil {
		return "", err
	}
	g, err := f.alive(args[2])
	if err != nil {
		return "", err
	}
	c := g.Call(ring.MemberID(args[0]), false, nil)
	f.w.Until(patience, func() bool { return c.Over })
	return fmt.Sprintf("%s, executed %d times", c.Reason, *c.Runs), nil
}

func (f *fleet) predict(args []string) (string, error) {
	plan, err := placement.ParsePlan(strings.Join(args, " "))
	if err != nil {
		return "", misuse("%v", err)
	}
	all := f.live()
	if len(all) == 0 {
		return "", misuse("there is no gateway to ask")
	}
	who := make(map[ring.GatewayID][]ring.MemberID)
	for _, g := range all {
		for _, s := range g.Admission.Supervisors() {
			who[g.ID] = append(who[g.ID], s.Member)
		}
	}
	p, err := placement.Predict(picture(all[0]), who, plan...)
	if err != nil {
		return answer(err), nil
	}
	return p.String(), nil
}

// picture is the fleet as a gateway knows it.
func picture(g *sim.Gateway) *placement.View {
	r := g.Admission.Roster()
	return placement.NewView(placement.Picture{
		Self: g.ID, Ring: r.Ring(), Gateways: slices.Collect(r.Gateways()), Live: r.Live(), Asking: true,
	})
}

func (f *fleet) traffic([]string) (string, error) {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(f.account.traffic)) {
		v := f.account.traffic[kind]
		fmt.Fprintf(&b, "%s: %d, the longest has %d bytes", kind, v.messages, v.longest)
		if v.members > 0 {
			fmt.Fprintf(&b, ", at most %d members in one", v.members)
		}
		b.WriteByte('\n')
	}
	f.account.traffic = make(map[string]*volume)
	return cmp.Or(b.String(), "nothing"), nil
}
