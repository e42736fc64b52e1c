// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"go/format"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Go code in a document is copied from a region of a Go file, so that it is
// compiled. A region begins with a comment of its own line, // readme:NAME, and ends
// with // readme:end. In the document its indentation is taken away.

// fence is a block of code in a document.
type fence struct {
	at       string // file:line
	language string
	text     string
}

// fences returns the blocks of code of a document.
func fences(name, text string) []fence {
	var all []fence
	open := false
	n := 0
	for line := range strings.Lines(text) {
		n++
		info, marker := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case marker && !open:
			open = true
			all = append(all, fence{at: fmt.Sprintf("%s:%d", name, n), language: info})
		case marker:
			open = false
		case open:
			all[len(all)-1].text += line
		}
	}
	return all
}

// regions returns the marked regions of a Go file, by name.
func regions(name, text string) (map[string]string, error) {
	found := map[string]string{}
	open := ""
	n := 0
	for line := range strings.Lines(text) {
		n++
		label, marker := strings.CutPrefix(strings.TrimSpace(line), "// readme:")
		_, known := found[label]
		switch {
		case !marker && open != "":
			found[open] += line
		case !marker:
		case label == "end" && open == "":
			return nil, fmt.Errorf("%s:%d: the end of no region", name, n)
		case label == "end":
			open = ""
		case open != "":
			return nil, fmt.Errorf("%s:%d: region %s begins in region %s", name, n, label, open)
		case known:
			return nil, fmt.Errorf("%s:%d: a second region %s", name, n, label)
		default:
			open, found[label] = label, ""
		}
	}
	if open != "" {
		return nil, fmt.Errorf("%s: region %s has no end", name, open)
	}
	return found, nil
}

// plain removes what may differ between a region and a document: the common
// indentation, blank lines around, and what gofmt decides.
func plain(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	indent := -1
	for _, line := range lines {
		if depth := len(line) - len(strings.TrimLeft(line, "\t")); strings.TrimSpace(line) != "" && (indent < 0 || depth < indent) {
			indent = depth
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line[min(max(indent, 0), len(line)):], " \t")
	}
	text = strings.Join(lines, "\n")
	if formatted, err := format.Source([]byte(text)); err == nil {
		text = string(formatted)
	}
	return strings.TrimSpace(text)
}

// strangers returns what is wrong between documents and regions: blocks of Go
// that no file compiles, and regions that no document shows.
func strangers(blocks []fence, compiled map[string]string) []string {
	names := map[string]string{} // plain text -> region
	for _, name := range slices.Sorted(maps.Keys(compiled)) {
		names[plain(compiled[name])] = name
	}
	var faults []string
	shown := map[string]bool{}
	for _, block := range blocks {
		if block.language != "go" {
			continue
		}
		name, ok := names[plain(block.text)]
		if !ok {
			faults = append(faults, block.at+": this block of Go is in no region of a Go file")
		}
		shown[name] = true
	}
	for _, name := range names {
		if !shown[name] {
			faults = append(faults, "no document shows the region "+name)
		}
	}
	slices.Sort(faults)
	return faults
}

// The documents' Go code compiles.
func TestDocumentedCode(t *testing.T) {
	compiled := map[string]string{}
	for _, s := range sources(t) {
		if s.dir() == "internal/checks" {
			continue // it speaks of markers
		}
		found, err := regions(s.path, s.text)
		require.NoError(t, err)
		for name, text := range found {
			require.NotContains(t, compiled, name, "%s: a second region of that name", s.path)
			compiled[name] = text
		}
	}
	var blocks []fence
	for _, name := range files(t, ".md") {
		blocks = append(blocks, fences(name, read(t, name))...)
	}
	require.True(t, slices.ContainsFunc(blocks, func(f fence) bool {
		return f.language == "go" && strings.HasPrefix(f.at, "README.md:")
	}), "README.md shows no Go")
	report(t, strangers(blocks, compiled))
}

// The commands that a newcomer tries first are those that are tested.
func TestDocumentedCommands(t *testing.T) {
	var shown []string
	for _, f := range fences("README.md", read(t, "README.md")) {
		for line := range strings.Lines(f.text) {
			command, _, _ := strings.Cut(line, " #")
			shown = append(shown, strings.TrimSpace(command))
		}
	}
	require.Contains(t, shown, "go run ./examples/rollout")
	require.Contains(t, shown, "go test work")
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// A link to a file of this repository leads somewhere.
func TestLinks(t *testing.T) {
	for _, name := range files(t, ".md") {
		for _, match := range link.FindAllStringSubmatch(read(t, name), -1) {
			target, _, _ := strings.Cut(match[1], "#")
			if target == "" || strings.Contains(target, ":") {
				continue // within the document, or elsewhere
			}
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path.Join(path.Dir(name), target))))
			require.NoError(t, err, "%s links to %s", name, target)
		}
	}
}

func TestStrangers(t *testing.T) {
	code := "func f() {\n\t// readme:loop\n\tfor {\n\t\tg()\n\t}\n\t// readme:end\n}\n"
	for _, row := range []struct{ name, document, want string }{
		{"the same", "```go\nfor {\n\tg()\n}\n```\n", ""},
		{"the same, otherwise indented", "```go\nfor {\n    g()\n}\n```\n", ""},
		{"another language besides", "```go\nfor {\n\tg()\n}\n```\n```sh\nls\n```\n", ""},
		{"a word has changed", "```go\nfor {\n\th()\n}\n```\n", "README.md:1: this block of Go is in no region of a Go file\nno document shows the region loop"},
		{"a line is missing", "Text.\n```go\nfor {\n}\n```\n", "README.md:2: this block of Go is in no region of a Go file\nno document shows the region loop"},
		{"not Go to the reader", "```\nfor {\n\tg()\n}\n```\n", "no document shows the region loop"},
	} {
		t.Run(row.name, func(t *testing.T) {
			compiled, err := regions("a_test.go", code)
			require.NoError(t, err)
			require.Equal(t, row.want, strings.Join(strangers(fences("README.md", row.document), compiled), "\n"))
		})
	}
}

func TestRegions(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"no end", "// readme:a\nx\n", "a.go: region a has no end"},
		{"no begin", "// readme:end\n", "a.go:1: the end of no region"},
		{"one in another", "// readme:a\n// readme:b\n// readme:end\n", "a.go:2: region b begins in region a"},
		{"twice", "// readme:a\n// readme:end\n// readme:a\n// readme:end\n", "a.go:3: a second region a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := regions("a.go", row.text)
			require.EqualError(t, err, row.want)
		})
	}
}
