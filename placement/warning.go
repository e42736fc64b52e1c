// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/evenring/evenring/ring"
)

// stepWarnings are about what the last step did.
func (f *forecast) stepWarnings(before, after Outcome) []string {
	var all []string
	lost := before.Balance.Gateways > 0 && after.Balance.Gateways == 0
	if lost || after.Waiting > before.Waiting {
		text := "no gateway is left that may be given supervisors"
		if after.Waiting > 0 {
			text += "; " + plural(after.Waiting, "supervisor waits", "supervisors wait") + " until one starts"
		}
		all = append(all, text)
	}
	if _, ok := after.Step.(Settle); !ok {
		return all
	}
	switch rest, unrest := f.rest(), Unrest(f.view.gateways); {
	case after.Balance.Gateways == 0:
		all = append(all, "it is not possible, for no gateway may be given supervisors")
	case unrest != "":
		all = append(all, "it moves nobody and gives up, for "+unrest)
	case rest.moves > 0:
		all = append(all, "its budget does not suffice: "+plural(rest.moves, "more move", "more moves")+" would make it "+rest.ends())
	case len(rest.short) > 0:
		all = append(all, "it is not possible to make it even, for "+rest.why())
	}
	return all
}

// planWarnings are about where the plan ends, and what it could not know.
func (f *forecast) planWarnings(p Prediction) []string {
	var all []string
	for _, id := range f.unknown {
		all = append(all, fmt.Sprintf("it is not known how many supervisors %s serves: they are left out", word(string(id))))
	}
	end := p.After()
	if end.Waiting > 0 {
		all = append(all, plural(end.Waiting, "supervisor waits", "supervisors wait")+" for a gateway at the end: start one")
	}
	for _, g := range f.view.gateways {
		if n := g.Load(); n > 0 && !g.Placeable() {
			all = append(all, fmt.Sprintf("%s on %s at the end, which is %s and does not count for the balance",
				plural(n, "supervisor is", "supervisors are"), word(string(g.ID)), g.condition()))
		}
	}
	if b := end.Balance; !b.Even() {
		if last, ok := f.gaps.leftBehind(end); ok {
			all = append(all, fmt.Sprintf("a rolling restart without surge leaves the last gateway %s: nobody moves because a gateway starts; start each replacement before the old one stops, or settle afterwards", last))
		}
		all = append(all, fmt.Sprintf("the plan ends uneven, with %d to %s on a gateway: %s", b.Fewest, plural(b.Most, "supervisor", "supervisors"), f.remedy()))
	}
	often := 0
	for n, k := range p.Moves {
		if n > 1 {
			often += k
		}
	}
	if often > 0 {
		all = append(all, plural(often, "supervisor moves", "supervisors move")+" more than once, up to "+times(len(p.Moves)-1))
	}
	return all
}

// remedy says what a settle would do about a fleet that is uneven.
func (f *forecast) remedy() string {
	switch rest, unrest := f.rest(), Unrest(f.view.gateways); {
	case unrest != "":
		return "a settle would move nobody, for " + unrest
	case rest.moves == 0:
		return "a settle cannot mend that, for " + rest.why()
	case len(rest.short) > 0:
		return "a settle would take " + plural(rest.moves, "move", "moves") + " to make it " + rest.ends()
	default:
		return "a settle would take " + plural(rest.moves, "move", "moves")
	}
}

// rest is what a settle without a budget could do now.
type rest struct {
	moves int
	short []string // gateways that would have too few still, for nobody can be sent there
}

func (f *forecast) rest() (r rest) {
	all := sides(f.view.gateways)
	settle(all, 0, func(int, int) { r.moves++ })
	most := 0
	for _, s := range all {
		most = max(most, s.load)
	}
	for _, s := range all {
		if s.load+1 < most {
			r.short = append(r.short, word(string(s.id)))
		}
	}
	return r
}

// why says why it would not be even.
func (r rest) why() string {
	if len(r.short) == 1 {
		return r.short[0] + " has no endpoint and nobody can be sent there"
	}
	return strings.Join(r.short, ", ") + " have no endpoint and nobody can be sent there"
}

func (r rest) ends() string {
	if len(r.short) == 0 {
		return "even"
	}
	return "as even as can be, for " + r.why()
}

// gaps remembers which gateways started late: after others had left, and before the fleet was complete
// again. Whoever was displaced went to those that were there. What has been evened out since does not matter.
type gaps struct {
	enough int                    // placeable gateways when the fleet was complete
	open   bool                   // one has left since the last start
	late   [][]ring.GatewayID     // what started late, by step
	lost   map[ring.GatewayID]int // how many have said goodbye to each since it started
}

// closed notes that gateways have left.
func (g *gaps) closed() { g.open = true }

// opened notes that these start, with so many others that are placeable.
func (g *gaps) opened(ids []ring.GatewayID, placeable int) {
	if g.open && placeable < g.enough {
		g.late = append(g.late, slices.Clone(ids))
	}
	g.open = false
	for _, id := range ids {
		delete(g.lost, id)
	}
}

// left notes that so many have said goodbye to a gateway.
func (g *gaps) left(id ring.GatewayID, n int) {
	if g.lost == nil {
		g.lost = make(map[ring.GatewayID]int)
	}
	g.lost[id] += n
}

// after forgets what a step has evened out, other than by taking the ones that have too few away.
func (g *gaps) after(s Step, b Balance) {
	switch s.(type) {
	case Settle, Arrive, Leave:
		if b.Gateways > 0 && b.Even() {
			g.late, g.enough = nil, b.Gateways
		}
	}
}

// leftBehind says how the last gateway stands that started late, if several have, one after the other, nobody
// stands worse, and it is not because its supervisors have said goodbye.
func (g *gaps) leftBehind(end Outcome) (string, bool) {
	if len(g.late) < 2 {
		return "", false
	}
	last := g.late[len(g.late)-1]
	other := func(id ring.GatewayID) bool { return !slices.Contains(last, id) }
	if !slices.ContainsFunc(g.late, func(ids []ring.GatewayID) bool { return slices.ContainsFunc(ids, other) }) {
		return "", false
	}
	var behind []string
	empty := true
	for _, id := range last {
		n, here := end.Served[id]
		if here && n == end.Balance.Fewest && n+g.lost[id]+1 < end.Balance.Most {
			behind = append(behind, word(string(id)))
			empty = empty && n == 0
		}
	}
	switch names := strings.Join(behind, ", "); {
	case len(behind) == 0:
		return "", false
	case empty:
		return fmt.Sprintf("empty (%s)", names), true
	default:
		return fmt.Sprintf("behind (%s, with %d)", names, end.Balance.Fewest), true
	}
}
