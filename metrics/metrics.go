// SPDX-License-Identifier: Apache-2.0

// Package metrics is the metrics contract of a gateway, as data: which series
// there are, what they mean, and how they are read from a gateway's
// [redirect.Stats] and from what [Calls] has counted. It exports nothing by itself; the
// nested modules do, and anybody can in a few lines.
//
// Every series exists from the start, at 0: all label values come from closed
// sets. No label holds the ID of a gateway or of a member. Gauges are read from
// the gateway's state at the moment of collection, so that they cannot drift.
//
// The two to look at first are evenring_supervisors_served, over all gateways,
// and evenring_sessions_per_supervisor_max.
package metrics

import (
	"fmt"
	"iter"
	"slices"

	"github.com/evenring/evenring/redirect"
)

// Kind tells what a value may do from one reading to the next.
type Kind uint8

// The kinds.
const (
	Gauge   Kind = iota // goes up and down
	Counter             // only grows, from 0 at the start of the process
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Gauge:
		return "gauge"
	case Counter:
		return "counter"
	default:
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
}

// Desc describes one metric.
type Desc struct {
	Name   string // with the prefix evenring_, by the conventions of Prometheus
	Help   string // one sentence
	Unit   string // by UCUM, as OpenTelemetry wants it: "s", "1", or what is counted, in braces
	Kind   Kind
	Labels []Label // none: the metric has one series
}

// Label is a label and all values that it can have.
type Label struct {
	Name   string
	Values []string
}

// Sample is the value of one series at one moment.
type Sample struct {
	Name   string   // of the metric
	Labels []string // the values of its labels, in the order of [Desc].Labels; to be read only
	Value  float64
}

// All describes every metric, in the order in which [Collect] reads them. The
// result is the caller's.
func All() []Desc {
	all := make([]Desc, len(instruments))
	for i, in := range instruments {
		all[i] = in.Desc
		all[i].Labels = slices.Clone(in.Labels)
		for j, l := range all[i].Labels {
			all[i].Labels[j].Values = slices.Clone(l.Values)
		}
	}
	return all
}

// Collect reads every series, always the same ones in the same order. A gateway
// that takes no calls gives the zero [CallStats]. The sequence may be ranged over more than once.
func Collect(gateway redirect.Stats, calls CallStats) iter.Seq[Sample] {
	from := &figures{gateway, calls}
	return func(yield func(Sample) bool) {
		for _, in := range instruments {
			for series := range in.read(from) {
				series.Name = in.Name
				if !yield(series) {
					return
				}
			}
		}
	}
}
