// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

const (
	maxGateways    = 3
	maxSupervisors = 2

	service = "service"
)

// epoch is when every walk begins.
var epoch = time.Unix(1_000_000_000, 0).UTC()

func gatewayID(i int) ring.GatewayID     { return ring.GatewayID("ABC"[i : i+1]) }
func gatewayIndex(id ring.GatewayID) int { return strings.Index("ABC", string(id)) }
func endpoint(i int) string              { return "at-" + string(gatewayID(i)) }
func member(i int) ring.MemberID         { return ring.MemberID(fmt.Sprint("s", i+1)) }
func supervisorOf(m ring.MemberID) int   { return int(m[1] - '1') }

// id stands for a value that is kept once: what two states have in common is
// one number in both. 0 is none.
type id int32

// shape is how many there are of each.
type shape struct{ gateways, sups int }

// fleet holds every process state, message and step that the walk has met. A
// step of one process is carried out once for each state of that process,
// however many states of the fleet it occurs in: that is what it is to be pure.
type fleet struct {
	shape
	noAsks bool // there is no peer link to ask over
	faults faults

	printer  printer
	values   []any // messages and events
	ids      map[any]id
	turned   map[id]id // from verdict to event
	procs    []any     // *gateway or *sup, not to be changed
	procIDs  map[mark]id
	steps    map[stepKey]stepped
	repeated int // steps carried out twice to see that they come to the same
	mixed    int // that did not
}

type stepKey struct {
	proc, event id
	now         int64
}

// stepped is what a step of one process comes to.
type stepped struct {
	proc  id
	out   []id
	fault string
}

func (f *fleet) at(now int64) time.Time  { return epoch.Add(time.Duration(now)) }
func (f *fleet) since(t time.Time) int64 { return max(0, int64(t.Sub(epoch))) }

func newFleet(of shape, noAsks bool, faults faults) *fleet {
	return &fleet{
		shape: of, noAsks: noAsks, faults: faults.orNone(), printer: printer{layouts: make(layouts)},
		values: make([]any, 1), ids: make(map[any]id), turned: make(map[id]id),
		procs: make([]any, 1), procIDs: make(map[mark]id),
		steps: make(map[stepKey]stepped),
	}
}

// value returns the number of a message or event.
func (f *fleet) value(v any) id {
	key := v
	if !reflect.TypeOf(v).Comparable() {
		key = fmt.Sprintf("%#v", v)
	}
	n, ok := f.ids[key]
	if !ok {
		n = id(len(f.values))
		f.ids[key] = n
		f.values = append(f.values, v)
	}
	return n
}

// answered returns the event that a verdict is for its supervisor.
func (f *fleet) answered(verdict id) id {
	n, ok := f.turned[verdict]
	if !ok {
		v := f.values[verdict].(verdictOut)
		n = f.value(supervisor.Answered{Generation: v.gen, Verdict: v.verdict})
		f.turned[verdict] = n
	}
	return n
}

// proc returns the number of a process state.
func (f *fleet) proc(p any) id {
	key := f.printer.of(p)
	n, ok := f.procIDs[key]
	if !ok {
		if g, is := p.(*gateway); is {
			trim(g.adm.Roster())
		}
		n = id(len(f.procs))
		f.procIDs[key] = n
		f.procs = append(f.procs, p)
	}
	return n
}

// step carries out one step of one process, at the first time that it occurs.
func (f *fleet) step(proc, event id, now int64) stepped {
	key := stepKey{proc, event, now}
	s, ok := f.steps[key]
	if !ok {
		s = f.carryOut(key)
		f.steps[key] = s
		if len(f.steps)%16 == 0 {
			f.repeated++
			if again := f.carryOut(key); fmt.Sprint(again) != fmt.Sprint(s) {
				f.mixed++
			}
		}
	}
	return s
}

func (f *fleet) carryOut(key stepKey) stepped {
	var out []any
	var after any
	var fault string
	switch before := f.procs[key.proc].(type) {
	case *gateway:
		s := gatewayStep{gateway: clone(f.printer.layouts, before), fleet: f, now: f.at(key.now)}
		s.step(f.values[key.event])
		after, out, fault = s.gateway, s.out, s.fault
	case *sup:
		one := *before
		one.open = append([]placement.Generation(nil), one.open...)
		s := supStep{sup: &one, fleet: f, now: f.at(key.now)}
		s.step(f.values[key.event])
		after, out, fault = s.sup, s.out, s.fault
	}
	s := stepped{proc: f.proc(after), fault: fault}
	for _, o := range out {
		s.out = append(s.out, f.value(o))
	}
	return s
}
