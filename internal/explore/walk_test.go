// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evenring/evenring/redirect/supervisor"
)

// walk goes through every state that a fleet can reach from a root in so many
// actions, breadth first, so that the way to the first fault is the shortest.
type walk struct {
	*fleet
	depth int
	limit int    // of states; more are a fault of the test
	kinds []kind // the actions that are tried; nil: all
	every int    // of the last states, each n-th is run on to its end; 0: none
	calm  int64  // in so much time, and with nothing going wrong, everybody is placed evenly; below 0: not to be expected

	root        *state
	nodes       []node
	seen        map[mark]int32
	transitions int
	ran         int           // states that were run on
	reached     int           // depth of the last states
	settled     map[mark]bool // states from which the fair run is known to end well
	steady      int           // ends that were watched for a while longer
}

// node is a state on the way: how the walk came there.
type node struct {
	from   int32
	choice uint16 // which of the actions of from
	moved  bool   // something went wrong, or took long
}

// failure is what is wrong, and the shortest way there.
type failure struct {
	what  string
	trace []string
}

func (f *failure) String() string {
	return f.what + "\n  " + strings.Join(f.trace, "\n  ")
}

func (w *walk) hash(s *state, buf []byte) ([]byte, mark) {
	buf = s.bytes(buf[:0])
	return buf, markOf(buf)
}

// from walks from one of the roots.
func (w *walk) from(r root, b budget) *failure {
	s := r.make(w.fleet)
	s.budget = b
	return w.run(s)
}

// run walks, and returns the first fault that it meets.
func (w *walk) run(root *state) *failure {
	w.root = root
	w.seen = make(map[mark]int32)
	w.settled = make(map[mark]bool)
	buf, key := w.hash(root, nil)
	w.seen[key] = 0
	w.nodes = []node{{from: -1}}
	type waiting struct {
		node  int32
		state string
	}
	frontier := []waiting{{0, string(buf)}}
	for w.reached = 1; w.reached <= w.depth; w.reached++ {
		var next []waiting
		for _, here := range frontier {
			s := stateOf([]byte(here.state))
			for i, a := range w.actions(s) {
				if w.kinds != nil && !slices.Contains(w.kinds, a.kind) {
					continue
				}
				w.transitions++
				after, fault := w.follow(s, a)
				var key mark
				buf, key = w.hash(after, buf)
				if _, known := w.seen[key]; known && fault == "" {
					continue
				}
				at := int32(len(w.nodes))
				w.seen[key] = at
				w.nodes = append(w.nodes, node{here.node, uint16(i), w.nodes[here.node].moved || !a.fair() || after.now > root.now+w.calm})
				if fault == "" {
					fault = w.look(after)
				}
				if fault != "" {
					return &failure{fault, w.trace(at)}
				}
				next = append(next, waiting{at, string(buf)})
			}
		}
		frontier = next
		if len(w.nodes) > w.limit {
			return &failure{fmt.Sprintf("more than %d states", w.limit), nil}
		}
	}
	for i, here := range frontier {
		if w.every > 0 && i%w.every == 0 {
			w.ran++
			if fault, lines := w.end(stateOf([]byte(here.state)), w.nodes[here.node].moved); fault != "" {
				return &failure{fault, append(w.trace(here.node), lines...)}
			}
		}
	}
	return nil
}

// look holds a whole state against what must hold in every state.
func (f *fleet) look(s *state) string {
	for i := range f.sups {
		p := s.sups[i].proc
		if p == 0 {
			continue
		}
		streams := 0
		for _, c := range s.conns {
			if c.sup == i && c.client == streaming {
				streams++
			}
		}
		if open := len(f.procs[p].(*sup).open); open != streams {
			return fmt.Sprintf("s%d: takes %d streams for its own, and has %d", i+1, open, streams)
		}
	}
	return ""
}

// trace tells the way to a node.
func (w *walk) trace(at int32) []string {
	var way []int32
	for n := at; n > 0; n = w.nodes[n].from {
		way = append(way, n)
	}
	slices.Reverse(way)
	s := w.root
	var lines []string
	for _, n := range way {
		var told []string
		s, told = w.tell(s, w.actions(s)[w.nodes[n].choice])
		lines = append(lines, told...)
	}
	return lines
}

func (f *fleet) tell(s *state, a action) (*state, []string) {
	t := turn{state: s.copy(), fleet: f, told: true}
	t.take(a)
	return t.state, append([]string{time.Duration(t.now).String()}, t.lines...)
}

// patience is how long the fair run may take: the holds and the time-to-live
// of a gateway that is gone, and the longest pause of a supervisor.
const patience = 2 * time.Minute

// end lets everything arrive and every timer run out, with nothing more going
// wrong, and returns what is not as it should be then.
func (w *walk) end(s *state, moved bool) (fault string, lines []string) {
	if !w.serves(s) {
		return "", nil
	}
	limit := s.now + int64(patience)
	var way []mark
	var buf []byte
	begin := s
	for steps := 0; ; steps++ {
		var key mark
		buf, key = w.hash(s, buf)
		if known, ok := w.settled[key]; ok && (known || moved) {
			break
		}
		way = append(way, key)
		if w.rests(s) {
			if spread := w.spread(s); !moved && spread > 1 {
				fault = fmt.Sprintf("nothing went wrong, and it ends with a spread of %d", spread)
			} else if w.steady%64 == 0 {
				fault = w.stays(s)
			}
			w.steady++
			break
		}
		if s.now > limit || steps > 20_000 {
			fault = "it does not come to rest: " + w.restless(s)
			break
		}
		if s, fault = w.follow(s, w.fairAction(s)); fault != "" {
			break
		}
	}
	if fault != "" {
		return fault, w.retell(begin, len(way))
	}
	for _, key := range way {
		w.settled[key] = w.settled[key] || !moved
	}
	return "", nil
}

// serves reports whether a gateway is left, or will be, that takes supervisors.
func (f *fleet) serves(s *state) bool {
	for i := range f.gateways {
		if g := s.gws[i]; !g.exited && !g.draining {
			return true
		}
	}
	return false
}

// retell tells the fair run again, what the roster says to itself left out.
func (w *walk) retell(s *state, steps int) []string {
	lines := []string{"from here on nothing more goes wrong"}
	for range min(steps, 2000) {
		a := w.fairAction(s)
		var told []string
		s, told = w.tell(s, a)
		if len(told) > 2 || a.kind != deliver && a.kind != due {
			lines = append(lines, told...)
		}
	}
	return lines
}

// fairAction is the next thing that happens if everything arrives at once.
func (f *fleet) fairAction(s *state) action {
	for _, a := range f.actions(s) {
		if a.fair() {
			if a.kind == arrive && s.conns[a.a].gw < 0 { // the Service picks in turns
				return f.pick(s, a)
			}
			return a
		}
	}
	panic("explore: nothing can happen")
}

func (f *fleet) pick(s *state, a action) action {
	first := int(s.conns[a.a].gen) + s.conns[a.a].sup
	for i := range f.gateways {
		if j := (first + i) % f.gateways; s.gws[j].proc != 0 {
			a.b = j
			return a
		}
	}
	return a
}

// rests reports whether everybody is where he belongs, and all agree on it.
func (f *fleet) rests(s *state) bool { return f.restless(s) == "" }

// restless says why not.
func (f *fleet) restless(s *state) string {
	if len(s.conns) != f.sups || len(s.asks) > 0 {
		return fmt.Sprintf("%d streams, %d questions", len(s.conns), len(s.asks))
	}
	for i := range f.gateways {
		for j := range f.gateways {
			if len(s.links[i][j].queue) > 0 || s.links[i][j].late != 0 {
				return "messages are under way"
			}
		}
		if s.gws[i].proc == 0 {
			if !s.gws[i].exited {
				return string(gatewayID(i)) + " is down"
			}
			continue
		}
		g := f.procs[s.gws[i].proc].(*gateway)
		if len(g.pending) > 0 || g.drain != nil {
			return string(g.id) + " is at work"
		}
		for k, c := range s.conns {
			if home, e, ok := g.adm.Roster().Home(member(k)); !ok || int(c.gw) != gatewayIndex(home) || e.Held || e.Generation != c.gen {
				return fmt.Sprintf("%s takes s%d to be at %q, generation %d (held: %t)", g.id, k+1, home, e.Generation, e.Held)
			}
		}
		if n := len(g.adm.Supervisors()); n != f.served(s, i) {
			return fmt.Sprintf("%s serves %d, and has %d streams", g.id, n, f.served(s, i))
		}
	}
	for i, c := range s.conns {
		if c.sup != i || c.client != streaming || len(c.up) > 0 || len(c.down) > 0 || s.sups[i].proc == 0 {
			return fmt.Sprintf("s%d has no stream", i+1)
		}
		if state := f.procs[s.sups[i].proc].(*sup).machine.State(); state != supervisor.Attached {
			return fmt.Sprintf("s%d is %s", i+1, state)
		}
	}
	return ""
}

func (f *fleet) served(s *state, i int) int {
	n := 0
	for _, c := range s.conns {
		if int(c.gw) == i {
			n++
		}
	}
	return n
}

func (f *fleet) spread(s *state) int {
	lo, hi := f.sups, 0
	for i := range f.gateways {
		if s.gws[i].proc != 0 {
			n := f.served(s, i)
			lo, hi = min(lo, n), max(hi, n)
		}
	}
	return hi - lo
}

// stays lets timers alone run for a while: nobody may move, or dial.
func (f *fleet) stays(s *state) string {
	was := make([]string, 0, len(s.conns))
	for _, c := range s.conns {
		was = append(was, fmt.Sprint(c.stream, c.gw))
	}
	for end := s.now + int64(time.Minute); s.now < end; {
		var fault string
		if s, fault = f.follow(s, f.fairAction(s)); fault != "" {
			return fault
		}
		for i, c := range s.conns {
			if len(s.conns) != len(was) || fmt.Sprint(c.stream, c.gw) != was[i] {
				return "it was at rest, and then somebody moved or dialled"
			}
		}
	}
	return ""
}
