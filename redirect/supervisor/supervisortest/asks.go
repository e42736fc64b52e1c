// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"fmt"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// asked: a question reaches the other gateway, and what that answers comes back.
func asked(e *exam) {
	g := e.start("a", Gate{})
	e.meet()
	to := placement.Gateway{ID: g.ID(), Endpoint: g.addr}
	link := e.subject.Peers(e.t)
	ask := func(q placement.Question) placement.Answer {
		answer, err := link.Ask(e.bounded(), to, q)
		if err != nil {
			e.fatal("a question to a: %v", err)
		}
		return answer
	}
	answer := ask(placement.Question{From: "b", Member: "m", Generation: 1, Limit: 1})
	if !answer.Yes || answer.State != placement.Ready || g.Stats().Reserved != 1 {
		e.fatal("the answer is %+v, and a keeps %d places; it should be yes, and 1", answer, g.Stats().Reserved)
	}
	if _, err := g.StartDrain(func(redirect.Departure) {}); err != nil {
		e.fatal("%v", err)
	}
	answer = ask(placement.Question{From: "b", Member: "n", Generation: 1, Limit: 5})
	if answer.Yes || answer.State != placement.Draining {
		e.fatal("the answer of one that drains is %+v", answer)
	}
	if r := answer.Reports; len(r) != 1 || r[0].Gateway != g.ID() || r[0].Reserved != 1 {
		e.fatal("the answer brings %+v; it should bring a's own counts, of one place that is kept", r)
	}
}

// places: each supervisor that is redirected was announced, and is expected.
func places(e *exam) {
	const all = 20
	a, b := e.pair()
	tr := e.transport()
	for i := range all {
		hello := redirect.Hello{Member: ring.MemberID(fmt.Sprint("m", i)), Generation: 1, CanRedirect: true}
		verdict, stream := e.dial(tr, a, a.addr, hello)
		if stream != nil {
			continue
		}
		if verdict.Outcome != redirect.Redirect || verdict.Gateway != b.ID() || verdict.Endpoint != b.addr || verdict.Incarnation != b.Incarnation() {
			e.fatal("the verdict is %+v; it should be a redirect to b at %s", verdict, b.addr)
		}
		hello.Stay, hello.Hops, hello.Cap, hello.Proof = true, 1, verdict.Cap, verdict.Proof
		e.accepted(tr, b, verdict.Endpoint, hello)
	}
	at, there := a.Stats(), b.Stats()
	if at.Served+there.Served != all || there.Served < all/2-1 || there.Served > all/2+1 {
		e.fatal("a serves %d and b %d; it should be half of %d each", at.Served, there.Served, all)
	}
	if there.RedirectsArrived != uint64(there.Served) || at.Asks == 0 || at.AskFailures != 0 {
		e.fatal("a asked %d times, of which %d failed, and b expected %d of the %d that came; it should be all",
			at.Asks, at.AskFailures, there.RedirectsArrived, there.Served)
	}
}

// deadGateway: who does not answer is sent nobody.
func deadGateway(e *exam) {
	const all = 10
	a, b := e.pair()
	b.die()
	tr := e.transport()
	for i := range all {
		e.accepted(tr, a, a.addr, redirect.Hello{Member: ring.MemberID(fmt.Sprint("m", i)), Generation: 1, CanRedirect: true})
	}
	a.counts(e.patience, all, 0)
	if a.Stats().AskFailures == 0 {
		e.fatal("no question to a gateway that is dead has failed")
	}
}
