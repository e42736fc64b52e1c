// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// scripted are the packages that have scripts of fleets.
var scripted = []string{"handoff", "handoff/settle", "placement/roster", "redirect"}

// The package comment describes every command, in the words that misuse is answered with.
func TestEveryVerbIsDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var documented, usages []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(\w.*)$`).FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, m[1])
	}
	for name, v := range verbs {
		require.Equal(t, name, strings.Fields(v.usage)[0])
		usages = append(usages, v.usage)
	}
	slices.Sort(documented)
	slices.Sort(usages)
	require.Equal(t, usages, documented)
}

// A command that no script needs is none.
func TestEveryVerbIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range scripted {
		files, err := filepath.Glob(filepath.Join(root, dir, "testdata", "scenarios", "*.txt"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for line := range strings.Lines(string(text)) {
				name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
				if !strings.HasPrefix(line, " ") {
					used[name] = true
				}
			}
		}
	}
	for name := range verbs {
		require.True(t, used[name], "no script says %s", name)
	}
}

func TestMisuseIsAnsweredWithTheUsage(t *testing.T) {
	for _, row := range []struct{ before, line, want string }{
		{"", "gateways A", "gateways: a script begins with: world [seed=N]"},
		{"world", "dance A", `there is no command "dance"`},
		{"world", "world seed=x", `world: "x" is no number above 0; usage: world [seed=N]`},
		{"world", "world size=9", `there is no setting "size"`},
		{"world", "world no-ask", `there is no setting "no-ask"`},
		{"world", "run", "run: 0 arguments; usage: run DURATION"},
		{"world", "run 5", `run: "5" is no duration; usage: run DURATION`},
		{"world", "rest now", "rest: 1 arguments; usage: rest"},
		{"world", "kill A", `kill: there is no gateway "A"; usage: kill GATEWAY...`},
		{"gateways A|kill A", "drain A", `gateway "A" does not live`},
		{"gateways A", "drain A B", "2 gateways"},
		{"gateways A", "drain A windows=3s", `there is no setting "windows"`},
		{"gateways A", "drain A window=3", `"3" is no duration`},
		{"gateways A", "settle A budget=0", `"0" is no number above 0`},
		{"gateways A", "gateways B C at=x", "2 gateways at one address"},
		{"world", "arrive 0", `"0" is no number above 0`},
		{"world", "arrive s3..s1", `"s3..s1" is no range of members`},
		{"world", "restart s1", `there is no gateway or supervisor "s1"`},
		{"world", "pause X", `there is no gateway or supervisor "X"`},
		{"world", "hold A", `hold: "A" is no link; usage: hold LINK...`},
		{"world", "hold A->", `"A->" is no link`},
		{"world", "partition A B C", "no two sides"},
		{"world", "discovery all A", `no colon after "all"`},
		{"gateways A", "lie A->A of A", `"of" in the place of "about"`},
		{"world", "call s1 from A", `"from" in the place of "at"`},
		{"world", "steal s1 from s2", "s2 has not shown a proof yet"},
		{"gateways A", "predict stop A; jump A", `placement: step 2 (jump A): "jump" is no step`},
		{"gateways A", "predict stop A, start A", `"A," has a comma in it`},
		{"world", "predict stop A", "there is no gateway to ask"},
	} {
		t.Run(row.line, func(t *testing.T) {
			f := newFleet()
			if row.before != "" {
				for line := range strings.SplitSeq("world|"+row.before, "|") {
					say(t, f, line)
				}
			}
			_, err := f.do(strings.Fields(row.line)[0], strings.Fields(row.line)[1:])
			require.ErrorContains(t, err, row.want)
		})
	}
}

// say carries out a line that is right.
func say(t *testing.T, f *fleet, line string) string {
	t.Helper()
	words := strings.Fields(line)
	out, err := f.do(words[0], words[1:])
	require.NoError(t, err, line)
	return out
}

// An invariant that is broken ends the script, unless it has said that it wants none.
func TestBrokenInvariantsEndAScript(t *testing.T) {
	for _, watched := range []bool{true, false} {
		f := newFleet()
		for _, line := range []string{"world proofs", "gateways A B", "at A s1 s2 s3 s4"} {
			words := strings.Fields(line)
			_, err := f.do(words[0], words[1:])
			if line == "world proofs" && !watched {
				say(t, f, "unwatched")
			}
			if watched && words[0] == "at" {
				require.ErrorContains(t, err, "although it asks to stay")
			} else {
				require.NoError(t, err)
			}
		}
	}
}

// One seed, one story.
func TestSameSeedSameOutput(t *testing.T) {
	story := func(world string) string {
		f, out := newFleet(), ""
		for _, line := range []string{
			world, "gateways A B C", "arrive 40", "rest", "drain A", "run 5s", "abort A", "settle all", "refresh", "rest", "partition A | B C", "restart B",
			"run 20s", "heal", "rest", "show", "homes", "homes B", "view C", "traffic", "arrivals",
		} {
			out += say(t, f, line)
		}
		return out
	}
	require.Equal(t, story("world seed=3"), story("world seed=3"))
	require.NotEqual(t, story("world seed=3"), story("world seed=4"))
}
