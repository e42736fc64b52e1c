// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// result is one round's outcome: one JSON line. Round 0 is the start.
type result struct {
	Round       int     `json:"round"`
	Gateways    int     `json:"gateways"`
	Supervisors int     `json:"supervisors"`
	Hosts       int     `json:"hosts"`
	BurstMS     float64 `json:"burst_ms"` // from when everybody began to come, or was cut off, to when the last one was attached
	Agree       spans   `json:"agree_ms"` // over the gateways
	Lag         spans   `json:"lag_ms"`   // over the gateways
	Spread      int     `json:"spread"`   // most minus fewest served
	Each        []share `json:"each"`
	CPU         cpu     `json:"cpu_seconds"`
	OK          bool    `json:"ok"`
	Why         string  `json:"why,omitempty"` // it did not hold
}

// share is one gateway's part of a round.
type share struct {
	Gateway string  `json:"gateway"`
	AgreeMS float64 `json:"agree_ms"`
	LagMS   float64 `json:"lag_ms"`
	traffic
}

// cpu is seconds used.
type cpu struct {
	Gateways float64 `json:"gateways"` // all of them
	Hosts    float64 `json:"hosts"`    // all of them
	Driver   float64 `json:"driver"`   // this process
}

// spans is how long something took, in milliseconds.
type spans struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func quantiles(all []time.Duration) spans {
	sorted := slices.Sorted(slices.Values(all))
	rank := func(percent int) float64 { return millis(sorted[(len(sorted)*percent+99)/100-1]) }
	return spans{P50: rank(50), P99: rank(99), Max: rank(100)}
}

// millis is in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func round2(v float64) float64 { return math.Round(v*100) / 100 }

// total is the traffic of all gateways, and the most of any.
func (r result) total() (sum, most traffic) {
	for _, s := range r.Each {
		sum.MessagesSent += s.MessagesSent
		sum.BytesSent += s.BytesSent
		sum.Streams += s.Streams
		sum.PacketBytesSent += s.PacketBytesSent
		most.MessagesSent = max(most.MessagesSent, s.MessagesSent)
		most.BytesSent = max(most.BytesSent, s.BytesSent)
		most.Streams = max(most.Streams, s.Streams)
		most.PacketBytesSent = max(most.PacketBytesSent, s.PacketBytesSent)
	}
	return sum, most
}

// line is the result for a person.
func (r result) line() string {
	name := "start  "
	if r.Round > 0 {
		name = fmt.Sprintf("burst %d", r.Round)
	}
	verdict := "ok    "
	if !r.OK {
		verdict = "FAILED"
	}
	sum, most := r.total()
	n := max(1, len(r.Each))
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s  all attached after %.1f s, spread %d; agree p50 %.0f ms, p99 %.0f ms, max %.0f ms; lag p50 %.0f ms, p99 %.0f ms, max %.0f ms\n",
		verdict, name, r.BurstMS/1000, r.Spread, r.Agree.P50, r.Agree.P99, r.Agree.Max, r.Lag.P50, r.Lag.P99, r.Lag.Max)
	fmt.Fprintf(&b, "       each gateway sent %d messages (at most %d) in %d streams, %d kB (at most %d) and %d kB in packets; CPU %.1f s in gateways, %.1f s in hosts, %.1f s here",
		sum.MessagesSent/n, most.MessagesSent, sum.Streams/n, sum.BytesSent/n/1000, most.BytesSent/1000, sum.PacketBytesSent/n/1000, r.CPU.Gateways, r.CPU.Hosts, r.CPU.Driver)
	if r.Why != "" {
		b.WriteString("\n       " + strings.ReplaceAll(r.Why, "\n", "\n       "))
	}
	return b.String()
}

// summary is all rounds: one JSON line.
type summary struct {
	Rounds   int              `json:"rounds"` // the start included
	Agree    spans            `json:"agree_ms"`
	Lag      spans            `json:"lag_ms"`
	Gateways map[string]spans `json:"gateways"` // each one's agree, over the rounds
	OK       bool             `json:"ok"`
}

func summarize(all []result) summary {
	sum := summary{Rounds: len(all), Gateways: make(map[string]spans), OK: true}
	var agree, lag []time.Duration
	each := make(map[string][]time.Duration)
	for _, r := range all {
		sum.OK = sum.OK && r.OK
		for _, s := range r.Each {
			agree = append(agree, duration(s.AgreeMS))
			lag = append(lag, duration(s.LagMS))
			each[s.Gateway] = append(each[s.Gateway], duration(s.AgreeMS))
		}
	}
	sum.Agree, sum.Lag = quantiles(agree), quantiles(lag)
	for id, times := range each {
		sum.Gateways[id] = quantiles(times)
	}
	return sum
}

func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func (s summary) lines() string {
	verdict := "The rosters agreed and were right after every burst"
	if !s.OK {
		verdict = "The rosters were not always right in time"
	}
	var worst string
	for id, times := range s.Gateways {
		if worst == "" || times.Max > s.Gateways[worst].Max {
			worst = id
		}
	}
	return fmt.Sprintf("%s: agree p50 %.0f ms, p99 %.0f ms, max %.0f ms (%s); lag p50 %.0f ms, p99 %.0f ms, max %.0f ms.",
		verdict, s.Agree.P50, s.Agree.P99, s.Agree.Max, worst, s.Lag.P50, s.Lag.P99, s.Lag.Max)
}

// printer tells what was measured, to people and to machines.
type printer struct {
	people  io.Writer
	machine *json.Encoder // nil: nobody
}

func (p *printer) say(format string, args ...any) { fmt.Fprintf(p.people, format+"\n", args...) }

func (p *printer) round(r result) error {
	p.say("%s", r.line())
	return p.encode(r)
}

func (p *printer) summary(s summary) error {
	p.say("%s", s.lines())
	return p.encode(s)
}

func (p *printer) encode(v any) error {
	if p.machine == nil {
		return nil
	}
	return p.machine.Encode(v)
}
