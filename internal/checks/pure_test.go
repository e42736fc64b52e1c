// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// drivers are the files that run a pure machine in the world: they may read the
// clock, draw at random, lock and start goroutines. Every other file of the
// layers is pure.
var drivers = []string{
	"handoff/drain.go",
	"handoff/settle/run.go",
	"redirect/carry/answers.go",
	"redirect/carry/book.go",
	"redirect/carry/requests.go",
	"redirect/deliver.go",
	"redirect/forward/call.go",
	"redirect/attachment.go",
	"redirect/gateway.go",
	"redirect/internal/dialer/dialer.go",
	"redirect/session/run.go",
	"redirect/settling.go",
	"redirect/supervisor/home.go",
	"redirect/supervisor/run.go",
}

// locked are the files that may lock, and are pure otherwise: types for many goroutines, over pure ones.
var locked = []string{"metrics/calls.go", "placement/book.go"}

// worldly are the packages that make an output depend on more than the input.
var worldly = []string{
	"crypto/rand", "log", "log/slog", "math/rand", "math/rand/v2", "net", "os", "runtime", "sync", "sync/atomic", "unsafe",
}

// clock is what package time offers beyond arithmetic.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// impurities returns what a pure file must not have.
func impurities(s source) []string {
	var faults []string
	for _, i := range s.imports() {
		if slices.Contains(worldly, i.path) {
			faults = append(faults, fmt.Sprintf("%s: imports %s", s.at(i.pos), i.path))
		}
	}
	for _, name := range s.uses("time") {
		if slices.Contains(clock, name.Name) {
			faults = append(faults, fmt.Sprintf("%s: time.%s", s.at(name.Pos()), name.Name))
		}
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			faults = append(faults, s.at(n.Pos())+": a goroutine")
		case *ast.SelectStmt:
			faults = append(faults, s.at(n.Pos())+": a select")
		case *ast.SendStmt:
			faults = append(faults, s.at(n.Pos())+": a send")
		case *ast.ChanType:
			faults = append(faults, s.at(n.Pos())+": a channel")
		}
		return true
	})
	return faults
}

// Same input, same output: no clock, no randomness, no goroutine.
func TestPure(t *testing.T) {
	seen := map[string]bool{}
	var faults []string
	for _, s := range sources(t) {
		if layer(s.dir()) < 0 || s.isTest() {
			continue
		}
		found := impurities(s)
		if slices.Contains(drivers, s.path) {
			seen[s.path] = true
			require.NotEmpty(t, found, "%s is a driver, but pure", s.path)
			continue
		}
		if slices.Contains(locked, s.path) {
			seen[s.path] = true
			require.Len(t, found, 1, "%s may lock, and nothing else", s.path)
			require.Contains(t, found[0], ": imports sync")
			continue
		}
		faults = append(faults, found...)
	}
	report(t, faults)
	for _, name := range slices.Concat(drivers, locked) {
		require.True(t, seen[name], "%s is listed, but not there", name)
	}
}

func TestImpurities(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"arithmetic", "import \"time\"\n\nfunc f(t time.Time) time.Time { return t.Add(time.Second) }", ""},
		{"a field named like the clock", "func f(c struct{ Now int }) int { return c.Now }", ""},
		{"the clock", "import \"time\"\n\nfunc f() time.Time { return time.Now() }", "a.go:5: time.Now"},
		{"the clock as a value", "import \"time\"\n\nvar now = time.Now", "a.go:5: time.Now"},
		{"the clock by another name", "import t \"time\"\n\nvar now = t.Now", "a.go:5: time.Now"},
		{"randomness", "import \"math/rand/v2\"\n\nvar _ = rand.Int", "a.go:3: imports math/rand/v2"},
		{"a goroutine", "func f() { go f() }", "a.go:3: a goroutine"},
		{"a channel", "func f(c chan int) { c <- 1 }", "a.go:3: a channel\na.go:3: a send"},
		{"a select", "func f() { select {} }", "a.go:3: a select"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, strings.Join(impurities(parse(t, "a.go", "package p\n\n"+row.text+"\n")), "\n"))
		})
	}
}

// restless returns where a test sleeps, or leaves itself out.
func restless(s source) []string {
	var faults []string
	for _, name := range s.uses("time") {
		if name.Name == "Sleep" {
			faults = append(faults, s.at(name.Pos())+": time.Sleep")
		}
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "SkipNow", "Skipf"}, sel.Sel.Name) {
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains([]string{"t", "b", "f", "tb"}, x.Name) {
				faults = append(faults, fmt.Sprintf("%s: %s.%s", s.at(sel.Pos()), x.Name, sel.Sel.Name))
			}
		}
		return true
	})
	return faults
}

// A test waits for what it waits for, and every test is run everywhere.
func TestNoSleepsNoSkips(t *testing.T) {
	var faults []string
	for _, s := range sources(t) {
		if s.isTest() {
			faults = append(faults, restless(s)...)
		}
	}
	report(t, faults)
}

func TestRestless(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"a timer in a bubble", "import \"time\"\n\nfunc f() { <-time.After(1) }", ""},
		{"a sleep", "import \"time\"\n\nfunc f() { time.Sleep(1) }", "a_test.go:5: time.Sleep"},
		{"a skip", "import \"testing\"\n\nfunc TestF(t *testing.T) { t.Skip() }", "a_test.go:5: t.Skip"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, strings.Join(restless(parse(t, "a_test.go", "package p\n\n"+row.text+"\n")), "\n"))
		})
	}
}
