// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"iter"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/forward"
)

// figures is what the series are read from.
type figures struct {
	redirect.Stats
	calls CallStats
}

// instrument is a metric and how its series are read.
type instrument struct {
	Desc
	read func(*figures) iter.Seq[Sample]
}

// instruments is the contract.
var instruments = []instrument{
	// What this gateway serves.
	gauge("supervisors_served", "{supervisor}", "Supervisors attached to this gateway.",
		func(s *figures) int { return s.Served }),
	gauge("sessions_per_supervisor_max", "{session}", "Most child sessions on one supervisor that is attached to this gateway.",
		func(s *figures) int { return s.MostSessions }),
	gauge("supervisors_held", "{supervisor}", "Supervisors whose stream to this gateway broke and who are expected back.",
		func(s *figures) int { return s.Held }),
	gauge("supervisors_reserved", "{supervisor}", "Supervisors on their way, for whom this gateway keeps a place.",
		func(s *figures) int { return s.Reserved }),
	gauge("sessions_served", "{session}", "Child sessions attached to this gateway.",
		func(s *figures) int { return s.Sessions }),
	gauge("sessions_misplaced", "{session}", "Child sessions attached to this gateway whose supervisor is not.",
		func(s *figures) int { return s.MisplacedSessions }),
	flag("draining", "Whether this gateway is handing over what it serves.",
		func(s *figures) bool { return s.Draining }),
	flag("delisted", "Whether discovery has dropped this gateway, so that the others give it nobody.",
		func(s *figures) bool { return s.Delisted }),

	// The fleet, as this gateway sees it.
	gauge("fleet_supervisors_live", "{supervisor}", "Distinct supervisors in the fleet: attached, expected back or on their way.",
		func(s *figures) int { return s.Live }),
	gauge("fleet_gateways_known", "{gateway}", "Gateways that this one knows, itself included.",
		func(s *figures) int { return s.Gateways }),
	gauge("fleet_gateways_placeable", "{gateway}", "Gateways that may be given supervisors.",
		func(s *figures) int { return s.Placeable }),
	gauge("supervisors_cap", "{supervisor}", "Even share of one gateway, rounded up; 0 if no gateway is placeable.",
		func(s *figures) int { return s.Cap }),
	single("load_skew_ratio", "1", "Largest load of a placeable gateway over their mean; 1 is even.", Gauge,
		func(s *figures) float64 { return s.Skew }),
	flag("load_balanced", "Whether the loads of placeable gateways differ by no more than one.",
		func(s *figures) bool { return s.Balanced }),
	single("view_age_seconds", "s", "Time since the peer that has been silent longest was heard, suspect ones aside.", Gauge,
		func(s *figures) float64 { return s.ViewAge.Seconds() }),
	flag("view_stale", "Whether the view of the fleet is not to be relied on, so that nobody is sent away.",
		func(s *figures) bool { return s.Stale }),
	gauge("ring_mismatches", "{gateway}", "Known gateways that compute other rings than this one, by another version or configuration.",
		func(s *figures) int { return s.RingMismatches }),

	// What it decided.
	counters("placements", "{placement}", "Placements, by why they fell on their gateway.",
		"reason", placement.Reasons(), func(s *figures, r placement.Reason) uint64 { return s.Placements[r] }),
	verdicts,
	counters("over_cap_admissions", "{supervisor}", "Supervisors accepted above the cap, by the reason of the verdict.",
		"reason", redirect.Reasons(), func(s *figures, r redirect.Reason) uint64 { return s.OverCap[r] }),
	counters("redirects_ended", "{supervisor}", "Redirects to this gateway, by what became of the place kept for the supervisor.",
		"outcome", redirectOutcomes, func(s *figures, o outcome) uint64 { return o.count(s) }),
	counters("handoffs", "{supervisor}", "Supervisors served when a drain of this gateway began, and those that a settle told to move, by what became of them.",
		"outcome", handoffOutcomes, func(s *figures, o outcome) uint64 { return o.count(s) }),

	// What it heard and asked.
	counter("asks", "{ask}", "Questions put to other gateways before a redirect.",
		func(s *figures) uint64 { return s.Asks }),
	counter("ask_failures", "{ask}", "Questions that were not answered.",
		func(s *figures) uint64 { return s.AskFailures }),
	counter("roster_gaps", "{gap}", "Deltas that did not follow the one before.",
		func(s *figures) uint64 { return s.Gaps }),
	counter("roster_snapshots", "{snapshot}", "Snapshots of other gateways taken over.",
		func(s *figures) uint64 { return s.Snapshots }),

	// What callers wanted of it.
	counters("calls", "{call}", "Calls made at this gateway, by how they ended.",
		"outcome", callEnds, func(s *figures, r forward.Reason) uint64 { return s.calls.Made[r] }),
	counters("forwarded_calls", "{call}", "Calls that another gateway forwarded to this one, by how they ended here.",
		"outcome", callEnds, func(s *figures, r forward.Reason) uint64 { return s.calls.Forwarded[r] }),
	counters("call_attempts", "{attempt}", "Times that a call was given to a stream here or to another gateway, by what became of it.",
		"outcome", forward.Outcomes(), func(s *figures, o forward.Outcome) uint64 { return s.calls.Attempts[o] }),
	counter("call_waits", "{wait}", "Times that a call had to wait for word of its member.",
		func(s *figures) uint64 { return s.calls.Waits }),
}

// verdicts is the one metric with two labels.
var verdicts = instrument{
	Desc: Desc{
		Name: "evenring_verdicts_total", Help: "Answers to hellos, by outcome and reason.", Unit: "{verdict}", Kind: Counter,
		Labels: []Label{
			{Name: "outcome", Values: texts(redirect.Outcomes())},
			{Name: "reason", Values: texts(redirect.Reasons())},
		},
	},
	read: func(s *figures) iter.Seq[Sample] {
		return func(yield func(Sample) bool) {
			for _, v := range answers {
				if !yield(Sample{Labels: v.labels, Value: float64(s.Verdicts[v.outcome][v.reason])}) {
					return
				}
			}
		}
	},
}

// answer is one pair of outcome and reason.
type answer struct {
	outcome redirect.Outcome
	reason  redirect.Reason
	labels  []string
}

var answers = func() (all []answer) {
	for _, o := range redirect.Outcomes() {
		for _, r := range redirect.Reasons() {
			all = append(all, answer{o, r, []string{o.String(), r.String()}})
		}
	}
	return all
}()

// outcome is one of the ways in which something ends.
type outcome struct {
	text  string
	count func(*figures) uint64
}

func (o outcome) String() string { return o.text }

var redirectOutcomes = []outcome{
	{"arrived", func(s *figures) uint64 { return s.RedirectsArrived }},
	{"expired", func(s *figures) uint64 { return s.RedirectsExpired }},
	{"elsewhere", func(s *figures) uint64 { return s.RedirectsElsewhere }},
}

var handoffOutcomes = []outcome{
	{"moved", func(s *figures) uint64 { return s.HandoffsMoved }},
	{"closed", func(s *figures) uint64 { return s.HandoffsClosed }},
	{"left-behind", func(s *figures) uint64 { return s.HandoffsLeftBehind }},
}

func gauge(name, unit, help string, value func(*figures) int) instrument {
	return single(name, unit, help, Gauge, func(s *figures) float64 { return float64(value(s)) })
}

func flag(name, help string, value func(*figures) bool) instrument {
	return single(name, "1", help, Gauge, func(s *figures) float64 {
		if value(s) {
			return 1
		}
		return 0
	})
}

func counter(name, unit, help string, value func(*figures) uint64) instrument {
	return single(name+"_total", unit, help, Counter, func(s *figures) float64 { return float64(value(s)) })
}

// single is a metric without labels.
func single(name, unit, help string, kind Kind, value func(*figures) float64) instrument {
	return instrument{
		Desc: Desc{Name: "evenring_" + name, Help: help, Unit: unit, Kind: kind},
		read: func(s *figures) iter.Seq[Sample] {
			return func(yield func(Sample) bool) { yield(Sample{Value: value(s)}) }
		},
	}
}

// counters is a counter with one label, which has a closed set of values.
func counters[T fmt.Stringer](name, unit, help, label string, set []T, value func(*figures, T) uint64) instrument {
	labels := texts(set)
	return instrument{
		Desc: Desc{
			Name: "evenring_" + name + "_total", Help: help, Unit: unit, Kind: Counter,
			Labels: []Label{{Name: label, Values: labels}},
		},
		read: func(s *figures) iter.Seq[Sample] {
			return func(yield func(Sample) bool) {
				for i, one := range set {
					if !yield(Sample{Labels: labels[i : i+1 : i+1], Value: float64(value(s, one))}) {
						return
					}
				}
			}
		},
	}
}

func texts[T fmt.Stringer](set []T) []string {
	all := make([]string, len(set))
	for i, one := range set {
		all[i] = one.String()
	}
	return all
}
