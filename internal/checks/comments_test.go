// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const license = "// SPDX-License-Identifier: Apache-2.0\n"

func TestLicense(t *testing.T) {
	for _, s := range sources(t) {
		require.True(t, strings.HasPrefix(s.text, license+"\n"), "%s: the first line is not the licence, alone", s.path)
	}
}

// Every package says what it is, in one place.
func TestPackageComments(t *testing.T) {
	comments := map[string][]string{} // package -> files with a package comment
	for _, s := range sources(t) {
		name := s.tree.Name.Name
		if strings.HasSuffix(name, "_test") {
			continue
		}
		files := comments[s.dir()]
		if s.tree.Doc != nil {
			files = append(files, s.path)
			require.True(t, name == "main" || strings.HasPrefix(s.tree.Doc.Text(), "Package "+name+" "),
				"%s: the package comment does not begin with Package %s", s.path, name)
		}
		comments[s.dir()] = files
	}
	for _, dir := range slices.Sorted(maps.Keys(comments)) {
		require.Len(t, comments[dir], 1, "files with a package comment in %s", dir)
	}
}

func TestChangelog(t *testing.T) {
	require.Contains(t, read(t, "CHANGELOG.md"), "\n## [Unreleased]\n")
}
