// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/evenring/evenring/placement"
)

// state is one state of the whole fleet: the processes, and what is under way
// between them.
type state struct {
	now    int64 // since epoch
	gws    [maxGateways]gatewayAt
	sups   [maxSupervisors]supAt
	conns  []conn // in the order in which they were dialled
	links  [maxGateways][maxGateways]link
	asks   []ask
	budget budget
}

type gatewayAt struct {
	proc     id // 0: not running
	started  uint8
	exited   bool // after its drain, for good
	draining bool
}

type supAt struct {
	proc     id // 0: not running
	started  uint8
	accepted placement.Generation // the highest that any gateway has accepted
}

// budget is what may still go wrong.
type budget struct {
	breaks  uint8 // streams and dials
	parts   uint8 // links between two gateways
	crashes uint8 // gateways
	kills   uint8 // supervisors
	drains  uint8
}

func (b budget) String() string {
	var words []string
	for _, w := range []struct {
		n    uint8
		name string
	}{{b.breaks, "break"}, {b.parts, "part"}, {b.crashes, "crash"}, {b.kills, "kill"}, {b.drains, "drain"}} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", w.n, w.name))
		}
	}
	if words == nil {
		return "quiet"
	}
	return strings.Join(words, ",")
}

// conn is one dial and the stream that it becomes.
type conn struct {
	stream
	gw       int8 // -1: the Service, which has not chosen yet
	client   client
	reached  bool // the gateway has had the hello
	up, down []id // in order of sending
}

// client is a conn in the eyes of the supervisor's process.
type client uint8

const (
	dialing client = iota
	streaming
	abandoned // nobody waits for the verdict any more
	closed
)

// link carries the roster's messages from one gateway to another, in order.
// late is a message of a link before this one, which may arrive at any time.
type link struct {
	queue []id
	late  id
}

// ask is a question under way, or its answer.
type ask struct {
	from, to int8
	place    place
	question id
	answer   id // 0: the question has not arrived
}

// bytes writes the state down: equal bytes are one state.
func (s *state) bytes(b []byte) []byte {
	u := func(n uint64) { b = binary.AppendUvarint(b, n) }
	ids := func(list []id) {
		u(uint64(len(list)))
		for _, n := range list {
			u(uint64(n))
		}
	}
	bit := func(on bool) uint64 {
		if on {
			return 1
		}
		return 0
	}
	u(uint64(s.now))
	for _, g := range s.gws {
		u(uint64(g.proc))
		u(uint64(g.started)<<2 | bit(g.exited)<<1 | bit(g.draining))
	}
	for _, p := range s.sups {
		u(uint64(p.proc))
		u(uint64(p.started))
		u(uint64(p.accepted))
	}
	u(uint64(len(s.conns)))
	for _, c := range s.conns {
		u(uint64(c.sup)<<7 | uint64(c.gw+1)<<4 | uint64(c.client)<<1 | bit(c.reached))
		u(uint64(c.gen))
		ids(c.up)
		ids(c.down)
	}
	for i := range s.links {
		for j := range s.links[i] {
			ids(s.links[i][j].queue)
			u(uint64(s.links[i][j].late))
		}
	}
	u(uint64(len(s.asks)))
	for _, a := range s.asks {
		u(uint64(a.from)<<4 | uint64(a.to)<<2 | uint64(a.place.sup)<<1 | bit(a.place.leaving))
		u(uint64(a.place.gen))
		u(uint64(a.place.round))
		u(uint64(a.question))
		u(uint64(a.answer))
	}
	return append(b, s.budget.breaks, s.budget.parts, s.budget.crashes, s.budget.kills, s.budget.drains)
}

// stateOf is the inverse of bytes.
func stateOf(b []byte) *state {
	u := func() uint64 {
		n, size := binary.Uvarint(b)
		b = b[size:]
		return n
	}
	ids := func() []id {
		n := u()
		if n == 0 {
			return nil
		}
		list := make([]id, n)
		for i := range list {
			list[i] = id(u())
		}
		return list
	}
	s := &state{now: int64(u())}
	for i := range s.gws {
		s.gws[i].proc = id(u())
		n := u()
		s.gws[i].started, s.gws[i].exited, s.gws[i].draining = uint8(n>>2), n>>1&1 == 1, n&1 == 1
	}
	for i := range s.sups {
		s.sups[i] = supAt{proc: id(u()), started: uint8(u()), accepted: placement.Generation(u())}
	}
	s.conns = make([]conn, u())
	for i := range s.conns {
		n := u()
		s.conns[i] = conn{
			stream: stream{int(n >> 7), placement.Generation(u())},
			gw:     int8(n>>4&7) - 1, client: client(n >> 1 & 7), reached: n&1 == 1, up: ids(), down: ids(),
		}
	}
	for i := range s.links {
		for j := range s.links[i] {
			s.links[i][j] = link{queue: ids(), late: id(u())}
		}
	}
	s.asks = make([]ask, u())
	for i := range s.asks {
		n := u()
		s.asks[i] = ask{
			from: int8(n >> 4), to: int8(n >> 2 & 3),
			place:    place{stream{int(n >> 1 & 1), placement.Generation(u())}, n&1 == 1, int(u())},
			question: id(u()), answer: id(u()),
		}
	}
	s.budget = budget{b[0], b[1], b[2], b[3], b[4]}
	return s
}
