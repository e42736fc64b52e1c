// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/evenring/evenring/handoff/settle"
	"github.com/evenring/evenring/redirect"
)

// Settled is what POST /settle answers with, as JSON.
type Settled struct {
	Ending  string  `json:"ending"` // settle.Ending's text
	Moved   []Moved `json:"moved"`
	Failed  []Moved `json:"failed"`
	Refused int     `json:"refused"`
	Left    int     `json:"left"` // how many this gateway would have to give still

	SpreadBefore int     `json:"spread_before"`
	SpreadAfter  int     `json:"spread_after"`
	Seconds      float64 `json:"seconds"`
	Error        string  `json:"error,omitempty"` // why it was cut short
}

// Moved is one supervisor that was told to move.
type Moved struct {
	Member  string `json:"member"`
	Gateway string `json:"gateway"`
	Cause   string `json:"cause,omitempty"` // why it has not moved
}

func settled(r settle.Report) Settled {
	s := Settled{
		Ending: r.Ending.String(), Moved: []Moved{}, Failed: []Moved{}, Refused: r.Refused, Left: r.Left,
		SpreadBefore: r.Before.Most - r.Before.Fewest, SpreadAfter: r.After.Most - r.After.Fewest, Seconds: r.Took.Seconds(),
	}
	for _, m := range r.Moved {
		s.Moved = append(s.Moved, Moved{Member: string(m.Member), Gateway: string(m.To)})
	}
	for _, f := range r.Failed {
		s.Failed = append(s.Failed, Moved{Member: string(f.Member), Gateway: string(f.To), Cause: f.Cause.String()})
	}
	return s
}

// settlePage moves what this gateway serves above the even share, and answers once that is done. It
// stops if whoever asked does not wait.
func (p *process) settlePage(w http.ResponseWriter, r *http.Request) {
	cfg, err := settleConfig(r.FormValue)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.log.Info("settling", "supervisors", p.gateway.Stats().Served)
	result, err := settle.Run(r.Context(), p.gateway, cfg, settle.Hooks{Observe: p.observeSettle})
	code := http.StatusOK
	switch {
	case err == nil:
		p.log.Info("settled", "ending", result.Ending.String(), "moved", len(result.Moved), "failed", len(result.Failed), "left", result.Left, "took", result.Took)
	case errors.Is(err, redirect.ErrDraining), errors.Is(err, redirect.ErrSettling):
		code = http.StatusConflict
	default:
		code = http.StatusServiceUnavailable
	}
	page := settled(result)
	if err != nil {
		p.log.Warn("the settle was cut short", "cause", err, "moved", len(result.Moved), "failed", len(result.Failed))
		page.Error = err.Error()
	}
	showJSON(w, code, page)
}

// settleConfig reads what the operator asks for: budget, a number, and stable
// and patience, durations; empty is the default. The error names each that is none.
func settleConfig(value func(string) string) (settle.Config, error) {
	var cfg settle.Config
	var errs []error
	if text := value("budget"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("budget is %q; it must be a number", text))
		}
		cfg.Budget = n
	}
	for _, d := range []struct {
		name string
		into *time.Duration
	}{{"stable", &cfg.Stable}, {"patience", &cfg.Patience}} {
		text := value(d.name)
		if text == "" {
			continue
		}
		v, err := time.ParseDuration(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s is %q; it must be a duration, such as 10s", d.name, text))
		}
		*d.into = v
	}
	if len(errs) == 0 {
		errs = append(errs, cfg.Validate())
	}
	return cfg, errors.Join(errs...)
}

// observeSettle logs how a settle goes.
func (p *process) observeSettle(o settle.Observation) {
	if o.Before != o.After {
		p.log.Info("settle", "was", o.Before.String(), "is", o.After.String())
	}
	for _, action := range o.Actions {
		if order, ok := action.(settle.Order); ok {
			p.log.Debug("settle asks", "member", order.Member, "gateway", order.To, "limit", order.Limit)
		}
	}
}
