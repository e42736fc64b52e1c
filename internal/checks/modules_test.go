// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// directives returns the arguments of every line of a go.mod or go.work that
// begins with the verb, in blocks too. What is marked as indirect is left out.
func directives(text, verb string) [][]string {
	var found [][]string
	block := ""
	for line := range strings.Lines(text) {
		code, comment, _ := strings.Cut(line, "//")
		words := strings.Fields(code)
		if len(words) == 0 {
			continue
		}
		if words[0] == ")" {
			block = ""
			continue
		}
		if len(words) == 2 && words[1] == "(" {
			block = words[0]
			continue
		}
		if block != "" {
			words = append([]string{block}, words...)
		}
		if words[0] == verb && strings.TrimSpace(comment) != "indirect" {
			found = append(found, words[1:])
		}
	}
	return found
}

func TestDirectives(t *testing.T) {
	const text = `module example.com/m // here

require example.com/a v1.0.0
require (
	example.com/b v1.1.0
	example.com/c v1.2.0 // indirect
)

replace example.com/b => ../b
`
	require.Equal(t, [][]string{{"example.com/m"}}, directives(text, "module"))
	require.Equal(t, [][]string{{"example.com/a", "v1.0.0"}, {"example.com/b", "v1.1.0"}}, directives(text, "require"))
	require.Equal(t, [][]string{{"example.com/b", "=>", "../b"}}, directives(text, "replace"))
	require.Empty(t, directives(text, "exclude"))
}

// Importing the core costs two small dependencies; a third is a decision, and
// this list is where it is made.
func TestRequirements(t *testing.T) {
	mod := read(t, "go.mod")
	var paths []string
	for _, words := range directives(mod, "require") {
		paths = append(paths, words[0])
		if words[0] == "github.com/buraksezer/consistent" {
			require.Equal(t, "v0.10.0", words[1], "another version may place differently")
		}
	}
	require.ElementsMatch(t, []string{
		"github.com/buraksezer/consistent",
		"github.com/cespare/xxhash/v2",
		"github.com/stretchr/testify", // tests
		"go.uber.org/goleak",          // tests
	}, paths)
	require.Empty(t, directives(mod, "replace"), "the users of a module do not see its replacements")
	require.Empty(t, directives(mod, "toolchain"))
}

// Every module is part of the workspace, is named after its directory, and finds
// the other modules beside it when it is built alone.
func TestModules(t *testing.T) {
	var inTree, used []string
	for _, file := range files(t, ".mod") {
		dir := path.Dir(file)
		inTree = append(inTree, dir)
		mod := read(t, file)
		require.Equal(t, [][]string{{path.Join(modPath, dir)}}, directives(mod, "module"), file)
		for _, words := range directives(mod, "require") {
			if inside, ok := strings.CutPrefix(words[0], modPath); ok {
				require.True(t, slices.ContainsFunc(directives(mod, "replace"), func(words []string) bool {
					return len(words) == 3 && words[0] == modPath+inside && path.Join(dir, words[2]) == path.Join(".", inside)
				}), "%s: no replacement leads to %s%s", file, modPath, inside)
			}
		}
	}
	for _, words := range directives(read(t, "go.work"), "use") {
		used = append(used, path.Clean(words[0]))
	}
	require.ElementsMatch(t, inTree, used, "go.mod files and go.work")
}
