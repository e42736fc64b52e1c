// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"fmt"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// fleet is whom this process hosts.
type fleet struct {
	members []*member
	figures *figures
}

func newFleet(cfg Config) *fleet {
	f := &fleet{members: make([]*member, len(cfg.Members))}
	f.figures = newFigures(f.tally)
	for i, id := range cfg.Members {
		m := &member{
			id: id, service: cfg.Service, allow: cfg.allow(), report: cfg.Report, log: cfg.Log.With("member", id), figures: f.figures,
			children: make([]*child, cfg.Sessions),
		}
		m.transport = newTransport(cfg, m.echo)
		for j := range m.children {
			name := redirect.SessionID(fmt.Sprint("session-", j+1))
			m.children[j] = &child{parent: m, id: name, log: m.log.With("session", name)}
		}
		f.members[i] = m
	}
	return f
}

// tally is how the fleet is now.
type tally struct {
	supervisors int
	connected   int           // of the supervisors
	missing     ring.MemberID // the first that is not; empty: all are
	sessions    int
	served      int // of the sessions
	misplaced   int // of those, not where their supervisor is
}

// tally counts anew each time, so it cannot drift.
func (f *fleet) tally() tally {
	t := tally{supervisors: len(f.members)}
	for _, m := range f.members {
		if m.connected.Load() {
			t.connected++
		} else if t.missing == "" {
			t.missing = m.id
		}
		t.sessions += len(m.children)
		for _, c := range m.children {
			p := c.place.Load()
			if p == nil || *p == (place{}) {
				continue
			}
			t.served++
			if !p.atHome {
				t.misplaced++
			}
		}
	}
	return t
}
