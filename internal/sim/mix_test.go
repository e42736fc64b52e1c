// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"strings"
	"time"
)

// kind is one kind of fault, act or circumstance that a random run may have.
type kind uint

const (
	noAsks    kind = iota // there is no peer link to ask over
	loss                  // roster messages are lost
	twice                 // roster messages arrive twice
	slow                  // some of everything is late, and so overtaken
	late                  // a broken link is seen late
	lag                   // the Service sees late who has come and gone
	discovery             // gateways are told by discovery that one has gone
	outage                // discovery fails, or gives part of the list, for a while
	clocks                // machines' clocks differ, and drift apart
	cuts                  // gateways do not hear each other for a while
	severed               // a supervisor cannot reach a gateway for a while
	crash                 // a gateway's machine dies, and is started again or not
	stop                  // a gateway stops without a drain
	pause                 // a gateway stands still for a while
	elder                 // a gateway that stands still is replaced, and goes on
	freeze                // a supervisor stands still for a while
	breaks                // streams break
	supCrash              // a supervisor dies and returns
	supStop               // a supervisor says goodbye, and may return
	burst                 // newcomers arrive at once
	scaleUp               // a gateway is added
	drains                // a gateway is drained away
	abort                 // a drain is begun and aborted
	rolling               // every gateway is drained and replaced, one by one
	surge                 // the replacement is ready first
	settles               // a gateway settles
	calls                 // callers put requests
	sessions              // supervisors have sessions
	uneven                // each direction of each link is bad in its own way
	kinds
)

var kindText = [kinds]string{
	"noAsks", "loss", "twice", "slow", "late", "lag", "discovery", "outage", "clocks", "cuts", "severed", "crash", "stop", "pause", "elder", "freeze",
	"breaks", "supCrash", "supStop", "burst", "scaleUp", "drains", "abort", "rolling", "surge", "settles", "calls", "sessions", "uneven",
}

// weights are how likely it is that a run has a kind, in percent.
var weights = [kinds]int{
	noAsks: 20, loss: 35, twice: 30, slow: 30, late: 40, lag: 40, discovery: 50, outage: 20, clocks: 35, cuts: 30, severed: 25, crash: 40, stop: 15, pause: 30, elder: 12, freeze: 25,
	breaks: 40, supCrash: 35, supStop: 30, burst: 50, scaleUp: 30, drains: 40, abort: 15, rolling: 25, surge: 12, settles: 30, calls: 40, sessions: 40, uneven: 25,
}

// mix is a set of kinds.
type mix uint64

func (m mix) has(k kind) bool { return m&(1<<k) != 0 }

func (m mix) without(k kind) mix { return m &^ (1 << k) }

func (m mix) String() string {
	var all []string
	for k := range kinds {
		if m.has(k) {
			all = append(all, kindText[k])
		}
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, " ")
}

func mixOf(all ...kind) (m mix) {
	for _, k := range all {
		m |= 1 << k
	}
	return m
}

// source returns a kind's own numbers: taking another kind away does not change them.
func source(seed uint64, k kind) *rand.Rand { return rand.New(rand.NewPCG(seed, 100+uint64(k))) }

// drawMix draws what a run has.
func drawMix(seed uint64) (m mix) {
	for k := range kinds {
		if rand.New(rand.NewPCG(seed, 1000+uint64(k))).IntN(100) < weights[k] {
			m |= 1 << k
		}
	}
	return m
}

// between draws a time.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)+1))
}

// pick draws one of several; the zero value if there is none.
func pick[T any](r *rand.Rand, from []T) (one T) {
	if len(from) > 0 {
		one = from[r.IntN(len(from))]
	}
	return one
}
