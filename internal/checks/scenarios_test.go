// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// conversation is a case, and the package that owns its rule.
type conversation struct{ row, pkg string }

// conversations are the cases that were a conversation where they went wrong elsewhere.
// Each is a script. Those that are one decision (S2, S3, S8 to S11, S46) are rows
// of tables.
var conversations = []conversation{
	{"S1", "redirect"}, {"S7", "redirect"}, {"S13", "redirect"}, {"S14", "redirect"},
	{"S16", "handoff/settle"}, {"S17", "handoff/settle"}, {"S18", "handoff/settle"},
	{"S21", "redirect/forward"},
	{"S22", "placement/roster"}, {"S23", "placement/roster"}, {"S24", "placement/roster"}, {"S25", "placement/roster"},
	{"S28", "redirect/supervisor"}, {"S29", "redirect"}, {"S30", "redirect"}, {"S31", "redirect/supervisor"},
	{"S32", "redirect/supervisor"}, {"S33", "redirect/forward"}, {"S34", "redirect"}, {"S35", "redirect"},
	{"S36", "redirect/supervisor"}, {"S37", "redirect/supervisor"}, {"S38", "redirect/supervisor"}, {"S39", "redirect/supervisor"},
	{"S41", "redirect"}, {"S41", "redirect/supervisor"}, {"S42", "redirect/supervisor"}, {"S43", "redirect"}, {"S44", "redirect/forward"},
	{"S45", "handoff"}, {"S49", "handoff"}, {"S50", "redirect/forward"}, {"S51", "handoff"},
	{"S53", "placement/roster"}, {"S54", "placement/roster"}, {"S55", "placement/roster"}, {"S56", "placement/roster"},
	{"S57", "placement/roster"}, {"S60", "placement/roster"}, {"S62", "placement/roster"}, {"S63", "placement/roster"},
	{"S65", "redirect/session"}, {"S66", "redirect/session"},
	{"W1", "redirect"}, {"W2", "handoff/settle"}, {"W3", "handoff/settle"}, {"W4", "redirect"}, {"W7", "redirect"}, {"W8", "redirect"},
	{"W9", "redirect"}, {"W10", "redirect"}, {"W13", "placement/roster"}, {"W25", "placement/roster"}, {"L3", "redirect"},
}

// fleets are the packages whose scripts tell of whole fleets.
var fleets = []string{"handoff", "handoff/settle", "placement/roster", "redirect"}

// header returns the comment that a script begins with, in one line.
func header(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		rest, isComment := strings.CutPrefix(line, "#")
		if !isComment {
			break
		}
		words = append(words, strings.Fields(rest)...)
	}
	return strings.Join(words, " ")
}

// named reports whether a script's name is that of a row: S16-something.
func named(file, row string) bool { return strings.HasPrefix(path.Base(file), row+"-") }

// Every conversation is a script, and every script that is named after a case is one of these.
func TestConversationsAreScripts(t *testing.T) {
	dirs := map[string]bool{}
	for _, c := range conversations {
		dirs[c.pkg] = true
		require.NotEmpty(t, scripts(t, c.pkg, c.row+"-*.txt"), "%s has no script in %s", c.row, c.pkg)
	}
	for dir := range dirs {
		for _, name := range scripts(t, dir, "[A-Z]*.txt") {
			listed := slices.ContainsFunc(conversations, func(c conversation) bool { return c.pkg == dir && named(name, c.row) })
			require.True(t, listed, "%s is a case that is not listed", name)
		}
	}
}

// The script of a fleet says first which case it is, and what is right.
func TestFleetScriptsSayWhatIsRight(t *testing.T) {
	for _, dir := range fleets {
		for _, name := range scripts(t, dir, "*.txt") {
			says := header(read(t, name))
			require.Contains(t, says, " -> ", "%s does not say what is right", name)
			if row, _, named := strings.Cut(path.Base(name), "-"); named && row == strings.ToUpper(row) {
				require.Contains(t, says, row, "%s does not say which case it is", name)
			}
		}
	}
}

// scripts returns the names of a package's scripts that match the pattern.
func scripts(t testing.TB, pkg, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, pkg, "testdata", "scenarios", pattern))
	require.NoError(t, err)
	for i, file := range found {
		rel, err := filepath.Rel(root, file)
		require.NoError(t, err)
		found[i] = filepath.ToSlash(rel)
	}
	return found
}

func TestHeader(t *testing.T) {
	require.Equal(t, "S1: one -> two three", header("# S1: one ->\n#\n# two\n#   three\nworld\n# later\n"))
	require.Empty(t, header("world\n# later\n"))
	require.True(t, named("a/S1-b.txt", "S1"))
	require.False(t, named("a/S16-b.txt", "S1"))
}
