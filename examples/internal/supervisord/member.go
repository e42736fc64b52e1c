// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/session"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// member is one supervisor and its sessions.
type member struct {
	id      ring.MemberID
	service string
	allow   func(ring.GatewayID, string) error
	report  *report.Writer
	log     *slog.Logger
	figures *figures

	transport redirect.Transport // the sessions' too

	homes     supervisor.Homes
	children  []*child
	echoes    sync.WaitGroup
	connected atomic.Bool

	// The observer's alone.
	lostAt  time.Time            // when the last stream was lost; zero: there was none
	givenUp placement.Generation // the last attempt whose verdict is not waited for any more
}

// run keeps the supervisor and its sessions connected until ctx ends.
func (m *member) run(ctx context.Context) error {
	defer m.echoes.Wait()
	running, ctx := errgroup.WithContext(ctx)

	// A supervisor outlives its sessions, so that none is ever left at a
	// gateway without it.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	running.Go(func() error {
		cfg := supervisor.Config{Member: m.id, Service: m.service, Allow: m.allow}
		return supervisor.Run(alive, cfg, m.transport, supervisor.Hooks{
			Home:    m.homes.Set,
			Observe: m.observe,
			Stream:  func(stream redirect.Stream, _ supervisor.Home) { m.answer(stream) },
		})
	})
	running.Go(func() error {
		defer stop()
		sessions, ctx := errgroup.WithContext(ctx)
		for _, c := range m.children {
			sessions.Go(func() error { return c.run(ctx) })
		}
		<-ctx.Done()
		return sessions.Wait()
	})
	return running.Wait()
}

// observe tells what a step of the supervisor means. It sees the loss of a
// stream before the next is accepted, since they are steps of their own.
func (m *member) observe(o supervisor.Observation) {
	switch event := o.Event.(type) {
	case supervisor.Answered:
		m.answered(o.At, event.Verdict)
	case supervisor.Failed:
		if event.Generation != m.givenUp {
			m.failed(event.Err)
		}
	case supervisor.Noticed:
		m.noticed(event.Notice)
	}
	if o.Before.Connected() && !o.After.Connected() {
		m.lost(o)
	}
	for _, action := range o.Actions {
		switch action := action.(type) {
		case supervisor.Adopt:
			m.attached(o, action.Home)
		case supervisor.Dial:
			if action.Passed != nil {
				m.log.Warn("target passed over", "error", action.Passed)
			}
		case supervisor.Abandon:
			m.givenUp = action.Generation
			if _, ok := o.Event.(supervisor.Tick); ok {
				m.failed(errSilent)
			}
		}
	}
}

func (m *member) answered(at time.Time, v redirect.Verdict) {
	m.figures.verdict(v.Outcome)
	m.log.Debug("verdict", "outcome", v.Outcome, "reason", v.Reason, "gateway", v.Gateway, "endpoint", v.Endpoint)
	m.report.Write(report.Event{
		Kind: report.Verdict, At: at, Member: string(m.id),
		Outcome: v.Outcome.String(), Reason: v.Reason.String(), Gateway: string(v.Gateway),
	})
}

var errSilent = errors.New("nothing came in time")

func (m *member) failed(err error) {
	m.figures.dialFailures.Inc()
	m.log.Warn("no verdict", "error", err)
}

func (m *member) noticed(n redirect.Notice) {
	level := slog.LevelInfo
	if n.Kind == redirect.NoticeHeartbeat {
		level = slog.LevelDebug
	}
	m.log.Log(context.Background(), level, "notice", "kind", n.Kind, "reason", n.Reason, "gateway", n.Gateway, "endpoint", n.Endpoint)
}

func (m *member) lost(o supervisor.Observation) {
	m.lostAt = o.At
	m.connected.Store(false)
	m.log.Info("lost", "now", o.After)
	m.report.Write(report.Event{Kind: report.Lost, At: o.At, Member: string(m.id)})
}

func (m *member) attached(o supervisor.Observation, home supervisor.Home) {
	var gap time.Duration
	if !o.Before.Connected() && !m.lostAt.IsZero() {
		gap = o.At.Sub(m.lostAt)
		m.figures.gap(gap)
	}
	m.connected.Store(true)
	m.log.Info("attached", "gateway", home.Gateway, "endpoint", home.Endpoint, "gap", gap)
	m.report.Write(report.Event{
		Kind: report.Attached, At: o.At, Member: string(m.id),
		Gateway: string(home.Gateway), GapMS: gap.Seconds() * 1000,
	})
}

// child is one session of a member.
type child struct {
	parent *member
	id     redirect.SessionID
	log    *slog.Logger
	place  atomic.Pointer[place] // nil: not served yet
}

// place is where a session is served. The zero value is nowhere.
type place struct {
	gateway ring.GatewayID
	atHome  bool // gateway is the supervisor's
}

func (c *child) run(ctx context.Context) error {
	cfg := session.Config{Session: c.id, Member: c.parent.id, Service: c.parent.service, Allow: c.parent.allow}
	return session.Run(ctx, cfg, c.parent.transport, &c.parent.homes, session.Hooks{
		Observe: c.observe,
		Stream:  func(stream redirect.Stream, _ ring.GatewayID) { c.parent.answer(stream) },
	})
}

// observe tells where the session is now, whenever it is accepted anywhere and
// whenever that has changed.
func (c *child) observe(o session.Observation) {
	if failed, ok := o.Event.(session.Failed); ok {
		c.log.Debug("no verdict", "error", failed.Err)
	}
	var before place
	if p := c.place.Load(); p != nil {
		before = *p
	}
	now := place{before.gateway, o.AtHome}
	accepted := false
	for _, action := range o.Actions {
		if adopt, ok := action.(session.Adopt); ok {
			now.gateway, accepted = adopt.Gateway, true
		}
	}
	if !o.After.Connected() {
		now = place{}
	}
	if now == before && !accepted {
		return
	}
	c.place.Store(&now)
	c.log.Debug("served", "gateway", now.gateway, "at_home", now.atHome)
	c.parent.report.Write(report.Event{
		Kind: report.Session, At: o.At, Member: string(c.parent.id), Session: string(c.id),
		Gateway: string(now.gateway), AtHome: now.atHome,
	})
}
