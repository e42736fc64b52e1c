// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"fmt"
	"log/slog"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
)

// hooks log what the gateway does.
func (p *process) hooks() redirect.Hooks {
	return redirect.Hooks{
		Verdict: func(o redirect.Observation) {
			attrs := make([]any, 0, 10)
			attrs = append(attrs, slog.String("member", string(o.Hello.Member)))
			if o.Hello.Session != "" {
				attrs = append(attrs, slog.String("session", string(o.Hello.Session)))
			}
			p.log.Info("admission", append(attrs,
				slog.String("outcome", o.Verdict.Outcome.String()),
				slog.String("reason", o.Verdict.Reason.String()),
				slog.String("gateway", string(o.Verdict.Gateway)),
				slog.Int("asks", o.Asks),
				slog.Int("load", o.Decision.Load),
				slog.Int("cap", o.Verdict.Cap),
			)...)
		},
		Conflict: func(c roster.Conflict) {
			p.log.Error("a newer process uses this gateway's ID", "incarnation", c.Incarnation, "endpoint", c.Endpoint)
			p.fail(ErrSuperseded)
		},
		Disagrees: func(d roster.Disagrees) {
			p.log.Warn("a gateway computes other rings than this one: is it of another build?", "gateway", d.Gateway)
		},
		Delisted: func(roster.Delisted) {
			p.log.Warn("discovery has dropped this gateway; it hands over unless it is listed again", "grace", p.cfg.DelistGrace)
			select {
			case p.dropped <- struct{}{}:
			default: // it is told already
			}
		},
		Rejected: func(r roster.Rejected) {
			p.log.Debug("roster message ignored", "from", r.From, "error", r.Err)
		},
	}
}

// observeDrain logs how a drain goes.
func (p *process) observeDrain(o handoff.Observation) {
	if o.Before != o.After {
		p.log.Info("drain", "was", o.Before.String(), "is", o.After.String())
	}
	p.log.Debug("drain step", "event", fmt.Sprintf("%T%+v", o.Event, o.Event), "actions", len(o.Actions))
}
