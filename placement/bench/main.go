// SPDX-License-Identifier: Apache-2.0

// Bench measures placement beside what somebody would use instead, at the same
// work, and prints tables of it:
//
//	go run ./placement/bench [-benchtime 100ms] [-count 3] [-out placement/bench/results] [-check]
//
// Every cell is measured count times, in rounds, and the median is shown. With -out the
// samples are kept for benchstat, and the tables beside them. With -check
// the exit status is 1 if ours is not ahead as the README says, and
// each fault is named. The benchmarks of this package measure the same, one by one.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
)

func main() {
	testing.Init()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, timed))
}

// run does what the arguments say and returns the exit status.
func run(args []string, stdout, stderr io.Writer, measurer func(benchtime string) (measure, error)) int {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	benchtime := fs.String("benchtime", "100ms", "how long to measure each cell: a `duration`, or a number of decisions as 1000x")
	count := fs.Int("count", 3, "`rounds`; the median is shown")
	out := fs.String("out", "", "`directory` to keep the results in")
	check := fs.Bool("check", false, "fail if ours is not ahead")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2 // it has been said
	}
	if fs.NArg() > 0 || *count < 1 {
		fmt.Fprintln(stderr, "bench: -count is at least 1, and nothing comes after the flags")
		return 2
	}
	m, err := measurer(*benchtime)
	if err != nil {
		fmt.Fprintln(stderr, "bench: -benchtime:", err)
		return 2
	}
	samples, err := rounds(m, *count, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	figures := medians(samples)
	tables := figures.tables()
	fmt.Fprint(stdout, tables)
	if *out != "" {
		command := fmt.Sprintf("go run ./placement/bench -benchtime %s -count %d", *benchtime, *count)
		if err := keep(*out, header(command), samples, tables); err != nil {
			fmt.Fprintln(stderr, "bench:", err)
			return 1
		}
	}
	if !*check {
		return 0
	}
	faults := figures.faults()
	for _, fault := range faults {
		fmt.Fprintln(stderr, "bench: not so:", fault)
	}
	if len(faults) > 0 {
		return 1
	}
	fmt.Fprintln(stderr, "bench: ours is ahead, as it should be")
	return 0
}
