// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
)

// cell is one place of the tables: who does what, in which fleet. A column is a cell of nobody.
type cell struct {
	impl, job      string
	gateways, full int
}

// columns returns the columns of the tables of n gateways. What looks at no
// loads is measured once for all fills, in the fleet that is nowhere full.
func columns(n int) []cell {
	all := []cell{{job: jobOwner, gateways: n}}
	for _, job := range []string{jobCapped, jobReserve} {
		for _, percent := range percents {
			all = append(all, cell{job: job, gateways: n, full: percent})
		}
	}
	return all
}

// of is the cell of a column that is this one's.
func (c cell) of(impl string) cell {
	c.impl = impl
	return c
}

// cells returns those of a column.
func (c cell) cells() []cell {
	var all []cell
	for _, a := range alternatives {
		if a.make(c.job) != nil {
			all = append(all, c.of(a.name))
		}
	}
	return all
}

// cells returns every cell.
func cells() []cell {
	var all []cell
	for _, n := range sizes {
		for _, column := range columns(n) {
			all = append(all, column.cells()...)
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
