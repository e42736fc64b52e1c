// SPDX-License-Identifier: Apache-2.0

// Package checks holds the tests of the house: what the compiler and the linter
// do not see. It has no other code.
package checks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root    = "../.."
	modPath = "github.com/evenring/evenring"
)

// source is one Go file.
type source struct {
	path string // from the root, with slashes
	text string
	tree *ast.File
	fset *token.FileSet
}

// parse reads a file's text; the checks are themselves checked on texts made up for it.
func parse(t testing.TB, name, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	require.NoError(t, err)
	return source{path: name, text: text, tree: tree, fset: fset}
}

// dir is the directory of the file, "." at the root.
func (s source) dir() string { return path.Dir(s.path) }

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// at names a place for a person to go to.
func (s source) at(pos token.Pos) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(pos).Line)
}

// imported is one import: its path, and the name that it has in the file.
type imported struct {
	path, name string
	pos        token.Pos
}

func (s source) imports() []imported {
	var all []imported
	for _, spec := range s.tree.Imports {
		p := strings.Trim(spec.Path.Value, "`\"")
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		all = append(all, imported{path: p, name: name, pos: spec.Pos()})
	}
	return all
}

// uses returns the names that the file takes from an imported package, called or
// not, by whatever name the package has there.
func (s source) uses(importPath string) []*ast.Ident {
	var found []*ast.Ident
	for _, i := range s.imports() {
		if i.path != importPath {
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == i.name {
					found = append(found, sel.Sel)
				}
			}
			return true
		})
	}
	return found
}

// files returns every file below the root that carries the extension, leaving out
// hidden directories and testdata.
func files(t testing.TB, ext string) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); name != root && (strings.HasPrefix(base, ".") || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) == ext {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	}))
	require.NotEmpty(t, names, "no %s file below %s", ext, root)
	return names
}

// read returns the text of a file below the root.
func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

// sources parses every Go file of every module.
func sources(t testing.TB) []source {
	t.Helper()
	var all []source
	for _, name := range files(t, ".go") {
		all = append(all, parse(t, name, read(t, name)))
	}
	return all
}

// report fails the test with all faults at once.
func report(t testing.TB, faults []string) {
	t.Helper()
	require.Empty(t, faults, strings.Join(faults, "\n"))
}
