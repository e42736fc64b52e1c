// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/evenring/evenring/ring"
)

// Plan is what happens to a fleet.
type Plan string

// The plans. Each begins with gateways that serve nobody and supervisors that
// arrive, all as newcomers.
const (
	Rolling   Plan = "rolling"   // each gateway is restarted, one after the other
	Crash     Plan = "crash"     // a tenth of the gateways, at least one, is lost at once
	Burst     Plan = "burst"     // every stream breaks at once, and everybody comes back through the Service
	ScaleUp   Plan = "scale-up"  // half the gateways join when half the supervisors are there, and then the others arrive
	Partition Plan = "partition" // two halves do not hear each other while the last tenth arrives, and then they do
)

// Plans returns every plan.
func Plans() []Plan { return []Plan{Rolling, Crash, Burst, ScaleUp, Partition} }

// Limits of a fleet.
const (
	MaxGateways    = 10_000 // a ring takes time in the square of them
	MaxSupervisors = 1_000_000_000
)

// Config says what to run. The zero value is not valid.
type Config struct {
	Plan        Plan
	Gateways    int    // from 2 on; when the plan is over
	Supervisors int    // from 1 on; when the plan is over
	Surge       bool   // rolling: a gateway stops once its replacement is ready
	Settle      bool   // at the end, the fewest moves that make it even
	Seed        uint64 // decides which gateway the Service picks
}

// Validate reports every fault, each naming its field.
func (c Config) Validate() error {
	var errs []error
	if !slices.Contains(Plans(), c.Plan) {
		var names []string
		for _, p := range Plans() {
			names = append(names, string(p))
		}
		errs = append(errs, fmt.Errorf("scale: Config.Plan is %q; there are %s", c.Plan, strings.Join(names, ", ")))
	}
	if c.Gateways < 2 || c.Gateways > MaxGateways {
		errs = append(errs, fmt.Errorf("scale: Config.Gateways is %d; it must be from 2 to %d", c.Gateways, MaxGateways))
	}
	if c.Supervisors < 1 || c.Supervisors > MaxSupervisors {
		errs = append(errs, fmt.Errorf("scale: Config.Supervisors is %d; it must be from 1 to %d", c.Supervisors, MaxSupervisors))
	}
	return errors.Join(errs...)
}

// act is one act of a plan.
type act struct {
	phase string // what it is part of
	kind  kind
	ids   []ring.GatewayID // start, stop, crash: who; split: one half
	count int              // arrive: how many
	rest  bool             // a step of the plan is over with it
	even  bool             // and no two gateways that hear each other are more than one apart
}

type kind uint8

const (
	start kind = iota
	stop
	crash
	arrive
	comeBack
	split
	heal
	settle
)

// circles is how many rings an act takes.
func (k kind) circles() int {
	switch k {
	case start, stop, crash, heal:
		return 1
	case split:
		return 2
	default:
		return 0
	}
}

// acts yields what is to be done, in order. It may be ranged over more than once.
func (c Config) acts() iter.Seq[act] {
	first := c.initial()
	return func(yield func(act) bool) {
		here := gatewayIDs(0, first)
		begin := c.Supervisors
		switch c.Plan {
		case ScaleUp:
			begin = int(int64(c.Supervisors) * int64(first) / int64(c.Gateways))
		case Partition:
			begin = c.Supervisors - c.Supervisors/10
		}
		if !yield(act{phase: "arrive", kind: start, ids: here}) || !yield(act{phase: "arrive", kind: arrive, count: begin, rest: true, even: true}) {
			return
		}
		var rest []act
		switch c.Plan {
		case Rolling:
			if !c.restarts(here, yield) {
				return
			}
		case Crash:
			rest = []act{{phase: "crash", kind: crash, ids: here[:max(1, len(here)/10)], rest: true, even: true}}
		case Burst:
			rest = []act{{phase: "come back", kind: comeBack, rest: true, even: true}}
		case ScaleUp:
			rest = []act{
				{phase: "join", kind: start, ids: gatewayIDs(first, c.Gateways), rest: true},
				{phase: "arrive later", kind: arrive, count: c.Supervisors - begin, rest: true, even: true},
			}
		case Partition:
			rest = []act{
				{phase: "part", kind: split, ids: here[:len(here)/2], rest: true, even: true},
				{phase: "arrive parted", kind: arrive, count: c.Supervisors - begin, rest: true, even: true},
				{phase: "heal", kind: heal, rest: true},
			}
		}
		if c.Settle {
			rest = append(rest, act{phase: "settle", kind: settle, rest: true, even: true})
		}
		for _, a := range rest {
			if !yield(a) {
				return
			}
		}
	}
}

// restarts yields a rolling restart: with surge the replacement, under a name of its own, starts before a
// gateway stops; without, it starts again under the same name.
func (c Config) restarts(here []ring.GatewayID, yield func(act) bool) bool {
	for i, id := range here {
		down := act{phase: "restart", kind: stop, ids: here[i : i+1], rest: c.Surge, even: c.Surge}
		up := act{phase: "restart", kind: start, ids: []ring.GatewayID{id}, rest: !c.Surge}
		if c.Surge {
			up.ids[0] = gatewayID(c.Gateways + i)
			down, up = up, down
		}
		if !yield(down) || !yield(up) {
			return false
		}
	}
	return true
}

// initial is how many gateways there are at first.
func (c Config) initial() int {
	if c.Plan == ScaleUp {
		return c.Gateways / 2
	}
	return c.Gateways
}

// Decisions is about how many decisions the plan takes.
func (c Config) Decisions() int {
	switch c.Plan {
	case Rolling, Burst:
		return 2 * c.Supervisors
	case Crash:
		return c.Supervisors + c.Supervisors/10
	default:
		return c.Supervisors
	}
}

// circles yields the gateways of each ring that the acts take, in order.
func (c Config) circles() iter.Seq[[]ring.GatewayID] {
	return func(yield func([]ring.GatewayID) bool) {
		var here []ring.GatewayID
		without := func(ids []ring.GatewayID) []ring.GatewayID {
			return slices.DeleteFunc(slices.Clone(here), func(id ring.GatewayID) bool { return slices.Contains(ids, id) })
		}
		for a := range c.acts() {
			ok := true
			switch a.kind {
			case start:
				here = slices.Concat(here, a.ids)
				ok = yield(here)
			case stop, crash:
				here = without(a.ids)
				ok = yield(here)
			case split:
				ok = yield(a.ids) && yield(without(a.ids))
			case heal:
				ok = yield(here)
			}
			if !ok {
				return
			}
		}
	}
}

func gatewayID(n int) ring.GatewayID { return ring.GatewayID(fmt.Sprint("gw-", n)) }

func gatewayIDs(from, to int) []ring.GatewayID {
	all := make([]ring.GatewayID, 0, to-from)
	for n := from; n < to; n++ {
		all = append(all, gatewayID(n))
	}
	return all
}

// promise is what a plan keeps before anybody settles.
type promise struct {
	each    int  // moves of any supervisor, at most
	all     int  // moves of all together; -1: as many as it takes
	emptied bool // the gateway that started last ends empty
}

func (c Config) promise() promise {
	switch c.Plan {
	case Rolling:
		if c.Surge {
			return promise{each: 1, all: c.Supervisors}
		}
		return promise{each: 2, all: -1, emptied: true}
	case Crash:
		return promise{each: 1, all: -1}
	default:
		return promise{}
	}
}
