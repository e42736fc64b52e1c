// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
)

// cell is one place of the tables: who does what, in which fleet.
type cell struct {
	impl, job      string
	gateways, full int
}

// cells returns every cell, those of one fleet together. What looks at no
// loads is measured once for all of them, in the fleet that is nowhere full.
func cells() []cell {
	var all []cell
	for _, n := range sizes {
		for _, percent := range percents {
			for _, job := range []string{jobOwner, jobCapped, jobReserve} {
				for _, a := range alternatives {
					if a.make(job) != nil && (job != jobOwner || percent == 0) {
						all = append(all, cell{impl: a.name, job: job, gateways: n, full: percent})
					}
				}
			}
		}
	}
	return all
}

// benchmark is the function of bench_test.go that measures it too.
func (c cell) benchmark() string {
	if c.job == jobReserve {
		return "BenchmarkReserve"
	}
	return "BenchmarkPlace"
}

// sub is its name in there.
func (c cell) sub() string {
	if c.job == jobReserve {
		return fmt.Sprintf("impl=%s/gateways=%d/full=%d", c.impl, c.gateways, c.full)
	}
	return fmt.Sprintf("impl=%s/job=%s/gateways=%d/full=%d", c.impl, c.job, c.gateways, c.full)
}

func (c cell) String() string { return c.benchmark() + "/" + c.sub() }

// prepare returns what is measured.
func (c cell) prepare() (place, error) {
	p, err := find(c.impl).make(c.job)(newFleet(c.gateways, c.full))
	if err != nil {
		return nil, fmt.Errorf("%v: %w", c, err)
	}
	return p, nil
}

// loop measures it.
func loop(b *testing.B, p place) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p(members[i%len(members)])
	}
}
