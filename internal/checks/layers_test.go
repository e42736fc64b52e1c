// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers are the packages of the root module, from the bottom up. A package
// imports only from lower layers.
var layers = [][]string{
	{"ring", "redirect/internal/endpoint", "redirect/internal/pause"},
	{"placement"},
	{"placement/roster"},
	{"redirect"},
	{"redirect/carry", "redirect/internal/dialer", "redirect/forward"},
	{"redirect/supervisor"},
	{"redirect/session"},
	{"handoff"},
	{"handoff/settle"},
	{"metrics"},
}

// helpers serve tests and programs, and are imported by those and by each other alone.
var helpers = []string{"internal/checks", "internal/diagram", "internal/explore", "internal/herd", "internal/script", "internal/sim", "internal/sim/fleetscript", "placement/roster/rostertest", "redirect/internal/memnet", "redirect/supervisor/supervisortest"}

// nested are the modules below the root's directory.
func nested(t testing.TB) []string {
	t.Helper()
	var dirs []string
	for _, words := range directives(read(t, "go.work"), "use") {
		if dir := strings.TrimPrefix(words[0], "./"); dir != "." {
			dirs = append(dirs, dir)
		}
	}
	require.NotEmpty(t, dirs)
	return dirs
}

// within reports whether dir is one of dirs or below one.
func within(dir string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return dir == d || strings.HasPrefix(dir, d+"/") })
}

// layer returns the number of a package's layer, -1 if it has none.
func layer(pkg string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, pkg) })
}

// importFaults returns what is wrong with the imports of a file of the root module.
func importFaults(s source) []string {
	pkg := s.dir()
	own := layer(pkg)
	if own < 0 && pkg != "." && !slices.Contains(helpers, pkg) {
		return []string{fmt.Sprintf("%s: package %s is in no layer", s.path, pkg)}
	}
	if s.isTest() || own < 0 {
		return nil
	}
	var faults []string
	for _, i := range s.imports() {
		other, inside := strings.CutPrefix(i.path, modPath+"/")
		if !inside {
			continue
		}
		switch at := layer(other); {
		case at < 0:
			faults = append(faults, fmt.Sprintf("%s: %s imports %s, which is in no layer", s.at(i.pos), pkg, other))
		case at >= own:
			faults = append(faults, fmt.Sprintf("%s: %s imports %s, which is not below it", s.at(i.pos), pkg, other))
		}
	}
	return faults
}

// Imports point one way.
func TestLayers(t *testing.T) {
	modules, seen := nested(t), map[string]bool{}
	var faults []string
	for _, s := range sources(t) {
		if !within(s.dir(), modules) {
			seen[s.dir()] = true
			faults = append(faults, importFaults(s)...)
		}
	}
	report(t, faults)
	for _, pkg := range slices.Concat(append(layers, helpers)...) {
		require.True(t, seen[pkg], "package %s is listed, but not there", pkg)
	}
}

// borrowed returns the internal packages of other modules that a file of the
// nested module in dir imports.
func borrowed(s source, dir string) []string {
	var faults []string
	for _, i := range s.imports() {
		pkg, inside := strings.CutPrefix(i.path, modPath+"/")
		if inside && strings.Contains("/"+pkg+"/", "/internal/") && !within(pkg, []string{dir}) {
			faults = append(faults, fmt.Sprintf("%s: %s belongs to another module", s.at(i.pos), pkg))
		}
	}
	return faults
}

// programs is the nested module that nobody imports: it is built from the
// tree as it stands, and may use what only tests and the library itself use.
const programs = "examples"

// A nested module is released by itself, so it lives on what the others export.
// The compiler would let it have their internal packages.
func TestNestedModulesBorrowNoInternals(t *testing.T) {
	modules := slices.DeleteFunc(nested(t), func(dir string) bool { return dir == programs })
	var faults []string
	for _, s := range sources(t) {
		for _, dir := range modules {
			if within(s.dir(), []string{dir}) {
				faults = append(faults, borrowed(s, dir)...)
			}
		}
	}
	report(t, faults)
}

func TestBorrowed(t *testing.T) {
	for _, row := range []struct{ name, imports, want string }{
		{"what is exported", `"` + modPath + `/redirect"`, ""},
		{"its own", `"` + modPath + `/redirect/redirectgrpc/internal/wire"`, ""},
		{"the root's", `"` + modPath + `/internal/sim"`, "redirect/redirectgrpc/a.go:3: internal/sim belongs to another module"},
		{"another package's", `"` + modPath + `/redirect/internal/pause"`, "redirect/redirectgrpc/a.go:3: redirect/internal/pause belongs to another module"},
		{"somebody else's", `"example.com/internal/a"`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			faults := borrowed(parse(t, "redirect/redirectgrpc/a.go", "package p\n\nimport "+row.imports+"\n"), "redirect/redirectgrpc")
			require.Equal(t, row.want, strings.Join(faults, "\n"))
		})
	}
}

func TestImportFaults(t *testing.T) {
	for _, row := range []struct{ name, path, imports, want string }{
		{"down", "handoff/a.go", `"` + modPath + `/ring"`, ""},
		{"up", "ring/a.go", `"` + modPath + `/placement"`, "ring/a.go:3: ring imports placement, which is not below it"},
		{"up by another name", "ring/a.go", `p "` + modPath + `/placement"`, "ring/a.go:3: ring imports placement, which is not below it"},
		{"sideways", "ring/a.go", `"` + modPath + `/redirect/internal/pause"`, "ring/a.go:3: ring imports redirect/internal/pause, which is not below it"},
		{"a helper", "redirect/a.go", `"` + modPath + `/internal/sim"`, "redirect/a.go:3: redirect imports internal/sim, which is in no layer"},
		{"a helper in a test", "redirect/a_test.go", `"` + modPath + `/internal/sim"`, ""},
		{"a nested module", "metrics/a.go", `"` + modPath + `/metrics/prom"`, "metrics/a.go:3: metrics imports metrics/prom, which is in no layer"},
		{"a package that nobody has placed", "extra/a.go", `"strings"`, "extra/a.go: package extra is in no layer"},
	} {
		t.Run(row.name, func(t *testing.T) {
			faults := importFaults(parse(t, row.path, "package p\n\nimport "+row.imports+"\n"))
			require.Equal(t, row.want, strings.Join(faults, "\n"))
		})
	}
}
