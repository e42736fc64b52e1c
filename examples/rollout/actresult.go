// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// actResult is one act's outcome: one JSON line.
type actResult struct {
	Act             int     `json:"act"`
	Kind            string  `json:"kind"`
	What            string  `json:"what"`
	AttachedSeconds float64 `json:"attached_s"` // from the act's beginning, as the next; 0: not all are, or nobody had to be
	AgreedSeconds   float64 `json:"agreed_s"`   // 0: the gateways do not agree
	Moved           int     `json:"moved"`
	MaxMoves        int     `json:"max_moves"`
	GapMSMax        float64 `json:"gap_ms_max"`
	Spread          int     `json:"spread"`
	Over            usage   `json:"over"` // what a process had open beyond what it holds explains, at most
	*Echo                   // nil: nobody was asked
	Seconds         float64 `json:"seconds"`
	OK              bool    `json:"ok"`
	Why             string  `json:"why,omitempty"`
}

// line is the act for a person.
func (r actResult) line() string {
	verdict := "ok    "
	if !r.OK {
		verdict = "FAILED"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s act %-3d %-34s %5.1fs  attached %.1fs  agreed %.1fs  moved %d (each at most %d)  gap %.0f ms  spread %d  open %+.0f goroutines %+.0f files",
		verdict, r.Act, r.Kind, r.Seconds, r.AttachedSeconds, r.AgreedSeconds, r.Moved, r.MaxMoves, r.GapMSMax, r.Spread, r.Over.Goroutines, r.Over.Files)
	if r.Echo != nil {
		fmt.Fprintf(&b, "  requests %d failed %d uncertain %d twice %d", r.Sent, r.Failed, r.Uncertain, r.Twice)
	}
	b.WriteString("\n       " + r.What)
	if r.Why != "" {
		b.WriteString("\n       " + r.Why)
	}
	return b.String()
}

// Chaos is what the acts of a run came to.
type Chaos struct {
	Seed        uint64         `json:"seed"`
	Acts        int            `json:"acts"`
	ActsFailed  []int          `json:"acts_failed"`
	Kinds       map[string]int `json:"acts_by_kind"`
	AttachedMax float64        `json:"attached_s_max"`
	AgreedMax   float64        `json:"agreed_s_max"`
	OverMax     usage          `json:"over_max"` // what a process had open beyond what it holds explains
	Growth      usage          `json:"growth"`   // of that with each act, for certain
	moved       int
	maxMoves    int
	gapMSMax    float64
	echo        Echo
}

// add counts an act.
func (c *Chaos) add(res actResult) {
	c.Acts++
	if !res.OK {
		c.ActsFailed = append(c.ActsFailed, res.Act)
	}
	if c.Kinds == nil {
		c.Kinds = make(map[string]int)
	}
	c.Kinds[res.Kind]++
	c.AttachedMax = max(c.AttachedMax, res.AttachedSeconds)
	c.AgreedMax = max(c.AgreedMax, res.AgreedSeconds)
	c.OverMax = c.OverMax.most(res.Over)
	c.moved += res.Moved
	c.maxMoves = max(c.maxMoves, res.MaxMoves)
	c.gapMSMax = max(c.gapMSMax, res.GapMSMax)
	if res.Echo != nil {
		c.echo = c.echo.plus(*res.Echo)
	}
}

// amend makes a step's result that of all acts, and not of the last one only.
func (c *Chaos) amend(res *result) {
	res.Chaos, res.Moved, res.MaxMoves, res.GapMSMax, res.GapMSP99 = c, c.moved, c.maxMoves, c.gapMSMax, 0
	if res.Echo != nil {
		*res.Echo = c.echo.plus(*res.Echo)
	}
}

// line is what a person is told of all acts.
func (c *Chaos) line() string {
	return fmt.Sprintf("%d acts, %d of them failed; attached after %.1f s at most, agreed after %.1f s; at most %v more open than explained, and for certain %v more with each act\n       %s",
		c.Acts, len(c.ActsFailed), c.AttachedMax, c.AgreedMax, c.OverMax, c.Growth, c.kindsLine())
}

func seconds(d time.Duration) float64 { return d.Round(10 * time.Millisecond).Seconds() }

// kindsLine says how often there was each kind of act.
func (c *Chaos) kindsLine() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(c.Kinds)) {
		all = append(all, fmt.Sprintf("%s %d", kind, c.Kinds[kind]))
	}
	return strings.Join(all, ", ")
}
