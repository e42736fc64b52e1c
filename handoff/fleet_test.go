// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inFleet runs test in a bubble with a fleet of its own, which ends with it.
func inFleet(t *testing.T, test func(t *testing.T, f *fleet)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fleet{t: t, ctx: ctx, gateways: map[ring.GatewayID]*redirect.Gateway{}}
		defer f.running.Wait()
		defer cancel()
		test(t, f)
	})
}

// fleet is gateways and supervisors in one process, with links that never fail.
type fleet struct {
	t       *testing.T
	ctx     context.Context
	running sync.WaitGroup
	ask     func(context.Context) error // before each question; nil: nothing
	askTime time.Duration               // for one question; 0: the default

	mu       sync.Mutex
	gateways map[ring.GatewayID]*redirect.Gateway
	service  []*redirect.Gateway // behind the Service, in turns
	turn     int
}

// start starts a gateway, which the others know at once.
func (f *fleet) start(id ring.GatewayID) *redirect.Gateway {
	gw, err := redirect.NewGateway(redirect.Config{
		Gateway: id, Incarnation: placement.Incarnation(time.Now().UnixNano()), Endpoint: string(id), Peers: f, AskTimeout: f.askTime,
	}, redirect.Hooks{})
	require.NoError(f.t, err)
	f.mu.Lock()
	f.gateways[id] = gw
	f.service = append(f.service, gw)
	f.mu.Unlock()
	f.running.Go(func() { gw.Run(f.ctx, link{f, id}) })
	for other, peer := range f.all() {
		if other != id {
			gw.Step(roster.LinkUp{Gateway: other})
			peer.Step(roster.LinkUp{Gateway: id})
		}
	}
	synctest.Wait()
	return gw
}

func (f *fleet) all() map[ring.GatewayID]*redirect.Gateway {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.gateways)
}

// Ask implements [redirect.Peers].
func (f *fleet) Ask(ctx context.Context, to placement.Gateway, q placement.Question) (placement.Answer, error) {
	if f.ask != nil {
		if err := f.ask(ctx); err != nil {
			return placement.Answer{}, err
		}
	}
	return f.all()[to.ID].Asked(q), nil
}

// link carries the messages of one gateway's roster.
type link struct {
	fleet *fleet
	from  ring.GatewayID
}

func (l link) Send(to ring.GatewayID, bytes []byte) error {
	message, err := roster.Decode(bytes)
	if err != nil {
		return err
	}
	for id, gw := range l.fleet.all() {
		if id == to || to == "" && id != l.from {
			gw.Step(roster.Received{From: l.from, Message: message})
		}
	}
	return nil
}

// Dial implements [redirect.Transport].
func (f *fleet) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	f.mu.Lock()
	gw := f.gateways[ring.GatewayID(addr)]
	if addr == "service" {
		gw = f.service[f.turn%len(f.service)]
		f.turn++
	}
	f.mu.Unlock()
	if gw == nil {
		return redirect.Verdict{}, nil, fmt.Errorf("nobody at %q", addr)
	}
	verdict, attachment := gw.Admit(ctx, hello)
	if attachment == nil {
		return verdict, nil, ctx.Err()
	}
	return verdict, stream{attachment}, nil
}

type stream struct{ *redirect.Attachment }

func (s stream) Notice() (redirect.Notice, error) {
	notice, open := <-s.Notices()
	if !open {
		s.Leave(true)
		return redirect.Notice{}, io.EOF
	}
	return notice, nil
}

func (s stream) Close() error {
	s.Leave(true)
	return nil
}

// supervise runs n supervisors and counts, for each, how often it was without a
// stream after its first.
func (f *fleet) supervise(n int) *gaps { return f.superviseAs("s", n) }

// superviseAs is supervise for members with names of their own.
func (f *fleet) superviseAs(prefix string, n int) *gaps {
	g := &gaps{count: map[ring.MemberID]int{}}
	for i := range n {
		member := ring.MemberID(fmt.Sprintf("%s%03d", prefix, i))
		f.running.Go(func() {
			err := supervisor.Run(f.ctx, supervisor.Config{Member: member, Service: "service"}, f, supervisor.Hooks{
				Connected: func(connected bool, _ time.Time) {
					if !connected && f.ctx.Err() == nil {
						g.add(member)
					}
				},
			})
			if err != nil {
				f.t.Error(err)
			}
		})
	}
	synctest.Wait()
	return g
}

type gaps struct {
	mu    sync.Mutex
	count map[ring.MemberID]int
}

func (g *gaps) add(m ring.MemberID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count[m]++
}

func (g *gaps) all() map[ring.MemberID]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

// attach attaches a supervisor that does nothing by itself.
func (f *fleet) attach(gw *redirect.Gateway, hello redirect.Hello) *redirect.Attachment {
	hello.Generation, hello.Stay = 1, true
	verdict, attachment := gw.Admit(f.ctx, hello)
	require.Equal(f.t, redirect.Accept, verdict.Outcome, "%+v", verdict)
	return attachment
}

// pass lets time pass.
func (f *fleet) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var errUnreachable = errors.New("unreachable")
