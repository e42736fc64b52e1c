// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// keep writes the samples, as benchstat reads them and in the order in which they were taken,
// and the tables into a directory. The files are named after the platform.
func keep(dir, header string, pairs []pair, tables string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(header)
	for _, p := range pairs {
		for _, s := range []sample{p.ours, p.theirs} {
			fmt.Fprintf(&b, "%v-%d\t%v\t%s\n", s.cell, runtime.GOMAXPROCS(0), s.result, s.result.MemString())
		}
	}
	base := filepath.Join(dir, runtime.GOOS+"-"+runtime.GOARCH)
	if err := os.WriteFile(base+".txt", []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(base+".table.txt", []byte(tables), 0o644)
}

// header says where the samples come from, in benchstat's keys.
func header(command string) string {
	lines := []string{
		"goos: " + runtime.GOOS,
		"goarch: " + runtime.GOARCH,
		"pkg: github.com/evenring/evenring/placement/bench",
		"cpu: " + cpu(),
		"go: " + runtime.Version(),
		"command: " + command,
	}
	return strings.Join(lines, "\n") + "\n"
}

// cpu names the processor as the operating system does, where that is a file. Package testing asks
// the processor itself, which can give another name in a virtual machine.
func cpu() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
