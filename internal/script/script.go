// SPDX-License-Identifier: Apache-2.0

// Package script runs conversations written down as text: one command a line,
// its whole observable output indented below it. Run compares, or, with the
// flag -update, writes the output anew, to be reviewed as a diff.
//
// Empty lines and lines that begin with # are kept as they are.
package script

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the expected output of scripts anew")

// Updating reports whether expected output is being written anew.
func Updating() bool { return *update }

// Run runs every script that the pattern finds, each as a subtest named after
// its file. start is called once for each and returns what carries out one
// command and gives its output, lines without a final newline. If a command ends
// the test, its file and line are named.
func Run(t *testing.T, pattern string, start func(t *testing.T) func(command string, args []string) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files, "no script matches %s", pattern)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := play(t, file, string(want), start(t))
			if *update {
				if !bytes.Equal(got, want) {
					require.NoError(t, os.WriteFile(file, got, 0o644))
				}
				return
			}
			require.Equal(t, string(want), string(got), "%s: run with -update and review the diff", file)
		})
	}
}

// play replays the commands of a script and returns the script with the output that they give.
func play(t testing.TB, file, text string, do func(string, []string) string) []byte {
	var out bytes.Buffer
	number, line, over := 0, "", false
	defer func() {
		if !over {
			t.Errorf("%s:%d: %s", file, number, line)
		}
	}()
	for line = range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, " \n")
		switch {
		case strings.HasPrefix(line, "  "): // output of an earlier run
			continue
		case line == "", strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
			continue
		}
		out.WriteString(line + "\n")
		words := strings.Fields(line)
		if output := strings.TrimRight(do(words[0], words[1:]), "\n"); output != "" {
			for l := range strings.Lines(output) {
				out.WriteString(strings.TrimRight("  "+l, " \n") + "\n")
			}
		}
	}
	over = true
	return out.Bytes()
}
