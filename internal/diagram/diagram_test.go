// SPDX-License-Identifier: Apache-2.0

package diagram_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/diagram"
)

func TestEdges(t *testing.T) {
	for _, c := range []struct {
		name    string
		picture string
		want    string
	}{
		{"a line", `
			a ---> bb
		`, "a -> bb"},
		{"both ways", `
			a <--- bb
			|      ^
			+------+
		`, "a -> bb, bb -> a"},
		{"a fork and a corner", `
			a ---+---> bb
			     |
			     +---> ccc
		`, "a -> bb, a -> ccc"},
		{"lines that meet", `
			a     bb
			|      |
			+------+--> ccc
		`, "a -> ccc, bb -> ccc"},
		{"down and up", `
			bb
			||  ^   when a happens
			v|  |   and ccc does not
			ccc-+
		`, "bb -> ccc"},
		{"up", `
			bb
			 ^   when a happens
			 |   and ccc does not
			ccc
		`, "ccc -> bb"},
		{"two at one arrow", `
			a --> bb or ccc when it rains
		`, "a -> bb, a -> ccc"},
		{"all", `
			any state ---> ccc for good
		`, "a -> ccc, bb -> ccc"},
		{"words are not lines", `
			a, bb-ccc, abba; bb a v ccc
		`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := "// Package p is.\n//\n"
			for line := range strings.Lines(c.picture) {
				if line = strings.TrimPrefix(line, "\t\t\t"); strings.TrimSpace(line) != "" {
					source += "//\t" + line
				}
			}
			source += "//\n// a --> ccc is not drawn.\npackage p\n"
			var got []string
			for _, e := range diagram.Edges(source, "a", "bb", "ccc") {
				got = append(got, e.String())
			}
			require.Equal(t, c.want, strings.Join(got, ", "))
		})
	}
}

func TestReadNamesTheFile(t *testing.T) {
	_, err := diagram.Read("no-such-file.go", "a")
	require.ErrorContains(t, err, "no-such-file.go")
}
