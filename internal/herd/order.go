// SPDX-License-Identifier: Apache-2.0

package herd

import (
	"encoding/binary"
	"hash"
	"hash/fnv"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// order makes a hash of what happens to whom, where and in which order; not of when.
type order struct {
	sum      hash.Hash64
	members  map[ring.MemberID]uint32
	gateways map[ring.GatewayID]uint32
}

// What happens.
const (
	arrival uint32 = iota
	question
	admission
	adoption
	refresh
)

func newOrder(wave Wave) *order {
	o := &order{sum: fnv.New64a(), members: make(map[ring.MemberID]uint32), gateways: make(map[ring.GatewayID]uint32)}
	for i := range wave.Supervisors {
		o.members[wave.member(i)] = uint32(i)
	}
	for i, id := range wave.gateways() {
		o.gateways[id] = uint32(i)
	}
	return o
}

func (o *order) note(facts ...uint32) {
	var word [4]byte
	for _, f := range facts {
		binary.LittleEndian.PutUint32(word[:], f)
		o.sum.Write(word[:])
	}
}

func (o *order) hello(g *sim.Gateway, h redirect.Hello) {
	o.note(arrival, o.gateways[g.ID], o.members[h.Member])
}

func (o *order) asked(g *sim.Gateway, q placement.Question, a placement.Answer) {
	yes := uint32(0)
	if a.Yes {
		yes = 1
	}
	o.note(question, o.gateways[q.From], o.gateways[g.ID], o.members[q.Member], yes)
}

func (o *order) verdict(g *sim.Gateway, v redirect.Verdict) {
	o.note(admission, o.gateways[g.ID], uint32(v.Outcome), o.gateways[v.Gateway])
}

func (o *order) adopted(s *sim.Supervisor) { o.note(adoption, o.members[s.Member]) }

func (o *order) refreshed() { o.note(refresh) }
