// SPDX-License-Identifier: Apache-2.0

// Bench measures placement beside what somebody would use instead, at the same
// work, and prints tables of it:
//
//	go run ./placement/bench [-benchtime 10ms] [-count 8] [-out placement/bench/results] [-check]
//
// Every cell is measured count times, and ours right before each time; the fastest of
// each is shown, and compared. With -out the samples are kept for benchstat, and the
// tables beside them. With -check the exit status is 1 if anything is not so that the README claims, and each
// fault is named. The benchmarks of this package measure the same, one by one.
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
	benchtime := fs.String("benchtime", "10ms", "how long one sample takes: a `duration`, or a number of decisions as 1000x")
	count := fs.Int("count", 8, "how many `samples` of each cell; the fastest is shown")
	out := fs.String("out", "", "`directory` to keep the results in")
	check := fs.Bool("check", false, "fail if what is claimed is not so")
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
	all, err := pairs(m, *count, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	figures := fastest(all)
	tables := figures.tables()
	fmt.Fprint(stdout, tables)
	if *out != "" {
		command := fmt.Sprintf("go run ./placement/bench -benchtime %s -count %d", *benchtime, *count)
		if err := keep(*out, header(command), all, tables); err != nil {
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
	fmt.Fprintln(stderr, "bench: all that is claimed is so")
	return 0
}
