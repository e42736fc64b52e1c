// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

const (
	echoCallers  = 16                    // each with connections of its own, and so at gateways of its own
	echoRenew    = time.Second           // how old a caller grows
	echoAtOnce   = 256                   // requests under way
	echoInterval = 10 * time.Millisecond // between two requests, whoever they are for
	echoTimeout  = 10 * time.Second      // for one
	echoWord     = "echo-"               // and a number that no other request has
)

// Echo is what became of the requests that were sent since the step before ended.
type Echo struct {
	Sent      int     `json:"echo_sent"`
	Failed    int     `json:"echo_failed"`    // no answer, or another than it should be; not executed
	Uncertain int     `json:"echo_uncertain"` // no answer, and it may have been executed
	Twice     int     `json:"echo_twice"`     // executed more than once
	MSP50     float64 `json:"echo_ms_p50"`    // of those answered
	MSP99     float64 `json:"echo_ms_p99"`
	MSMax     float64 `json:"echo_ms_max"`
	first     error   // why the first one failed
}

// echoes sends requests to some supervisors, one to each every so often, through
// gateways that the Service picks, and never a second time.
//
// Its callers are renewed before any connection has been idle for as long as a
// drain takes. With HTTP/1.1 this is what saves a request: a gateway that
// drains says with each answer that it will close the connection, and one that is idle all
// the while does not hear it.
type echoes struct {
	connect func() wire.Caller
	callers []*line
	stopAll context.CancelFunc
	asking  sync.WaitGroup // what sends, and what waits for an answer
	slots   chan struct{}  // one for each request under way

	mu       sync.Mutex
	rnd      *rand.Rand
	executed []uint8 // how often, by the request's number
	answered []bool
	now      *tally
}

// line is a caller, and the requests that are under way there.
type line struct {
	wire.Caller
	using sync.WaitGroup
}

// tally is what became of the requests of one step.
type tally struct {
	Echo
	took    []float64      // milliseconds
	pending sync.WaitGroup // requests without an answer
}

// newEchoes begins to send. connect makes a caller at the Service.
func newEchoes(cfg config, connect func() wire.Caller, members []string) *echoes {
	ctx, cancel := context.WithCancel(context.Background())
	e := &echoes{
		connect: connect, stopAll: cancel, slots: make(chan struct{}, echoAtOnce),
		rnd: rand.New(rand.NewPCG(cfg.seed, 3)), now: new(tally),
	}
	for range echoCallers {
		e.callers = append(e.callers, &line{Caller: connect()})
	}
	every := cmp.Or(cfg.echoEvery, echoInterval*time.Duration(len(members)))
	for i, m := range members {
		// One after another, and not all at once.
		after := every * time.Duration(i) / time.Duration(len(members))
		e.asking.Go(func() { e.ask(ctx, m, after, every) })
	}
	e.asking.Go(func() { e.renew(ctx) })
	return e
}

// renew puts new callers in the place of old ones, in turn. What is under way ends there.
func (e *echoes) renew(ctx context.Context) {
	tick := time.NewTicker(echoRenew / echoCallers)
	defer tick.Stop()
	for i := 0; ; i = (i + 1) % len(e.callers) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		e.mu.Lock()
		old := e.callers[i]
		e.callers[i] = &line{Caller: e.connect()}
		e.mu.Unlock()
		e.asking.Go(func() {
			old.using.Wait()
			_ = old.Close() // it carries nothing
		})
	}
}

// ask sends requests to a supervisor until ctx ends.
func (e *echoes) ask(ctx context.Context, member string, after, every time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case e.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		e.asking.Go(func() {
			defer func() { <-e.slots }()
			e.one(member)
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// one makes one request. It is not told that it may be executed twice.
func (e *echoes) one(member string) {
	e.mu.Lock()
	t := e.now
	t.Sent++
	t.pending.Add(1)
	n := len(e.executed)
	e.executed, e.answered = append(e.executed, 0), append(e.answered, false)
	caller := e.callers[e.rnd.IntN(len(e.callers))]
	caller.using.Add(1)
	e.mu.Unlock()
	defer t.pending.Done()
	defer caller.using.Done()

	sent := []byte(echoWord + strconv.Itoa(n))
	ctx, cancel := context.WithTimeout(context.Background(), echoTimeout)
	defer cancel()
	began := time.Now()
	got, err := caller.Call(ctx, redirect.Request{Member: ring.MemberID(member), Payload: sent})
	took := time.Since(began)
	uncertain := errors.Is(err, redirect.ErrUncertain)
	if err == nil && !bytes.Equal(got, sent) {
		err = fmt.Errorf("%s was answered with %q", sent, got)
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.answered[n] = true
		t.took = append(t.took, took.Seconds()*1000)
	case uncertain:
		t.Uncertain++
	default:
		t.Failed++
	}
	if err != nil && t.first == nil {
		t.first = fmt.Errorf("%s, after %v: %w", member, took.Round(time.Millisecond), err)
	}
}

// heard notes that a supervisor has executed a request.
func (e *echoes) heard(request string) {
	number, ok := strings.CutPrefix(request, echoWord)
	if !ok {
		return
	}
	n, err := strconv.Atoi(number)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil || n < 0 || n >= len(e.executed) {
		return
	}
	if e.executed[n]++; e.executed[n] == 2 {
		e.now.Twice++
	}
}

// stop sends no more, and waits for the answers, and for the supervisors' word of each.
func (e *echoes) stop(ctx context.Context) error {
	e.stopAll()
	e.asking.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		n := e.unheard()
		if n == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d requests were answered, and no supervisor says that it has executed them: %w", n, context.Cause(ctx))
		}
	}
}

func (e *echoes) unheard() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for i, answered := range e.answered {
		if answered && e.executed[i] == 0 {
			n++
		}
	}
	return n
}

// take returns what became of the requests that were sent since it was last called,
// and waits for the answers to those.
func (e *echoes) take() Echo {
	e.mu.Lock()
	t := e.now
	e.now = new(tally)
	e.mu.Unlock()
	t.pending.Wait()
	slices.Sort(t.took)
	if n := len(t.took); n > 0 {
		t.MSP50, t.MSP99, t.MSMax = micros(t.took[(n-1)/2]), micros(t.took[(n*99+99)/100-1]), micros(t.took[n-1])
	}
	return t.Echo
}

// rest waits for what is under way and ends every connection. Nothing is sent until
// the returned function is called.
func (e *echoes) rest() (resume func()) {
	for range cap(e.slots) {
		e.slots <- struct{}{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, old := range e.callers {
		e.callers[i] = &line{Caller: e.connect()} // it connects when it is needed
		_ = old.Close()
	}
	return func() {
		for range cap(e.slots) {
			<-e.slots
		}
	}
}

// close sends no more, and ends the connections once all is answered.
func (e *echoes) close() error {
	e.stopAll()
	e.asking.Wait()
	var errs []error
	for _, c := range e.callers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// judge says what did not hold. Nothing is ever executed twice. That each request is answered is promised
// while gateways drain, and while streams end and come back; if a process is killed, what it was at is
// lost with it, and a supervisor cannot be asked while there is none.
func (e Echo) judge(killed bool) []string {
	var why []string
	if e.Twice > 0 {
		why = append(why, fmt.Sprintf("%d requests were executed twice", e.Twice))
	}
	if lost := e.Failed + e.Uncertain; lost > 0 && !killed {
		why = append(why, fmt.Sprintf("%d of %d requests have no answer: %v", lost, e.Sent, e.first))
	}
	return why
}

// plus adds up two lots of requests. Of the times it keeps the longer ones.
func (e Echo) plus(o Echo) Echo {
	return Echo{
		Sent: e.Sent + o.Sent, Failed: e.Failed + o.Failed, Uncertain: e.Uncertain + o.Uncertain, Twice: e.Twice + o.Twice,
		MSP50: max(e.MSP50, o.MSP50), MSP99: max(e.MSP99, o.MSP99), MSMax: max(e.MSMax, o.MSMax), first: cmp.Or(e.first, o.first),
	}
}

// line is the requests for a person.
func (e Echo) line() string {
	text := fmt.Sprintf("%d requests  failed %d  uncertain %d  twice %d  took %.1f ms, p99 %.1f, max %.1f",
		e.Sent, e.Failed, e.Uncertain, e.Twice, e.MSP50, e.MSP99, e.MSMax)
	if e.first != nil {
		text += "\n       the first without an answer: " + e.first.Error()
	}
	return text
}
