// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamedFieldsExist: a field that is called irrelevant, or a type that is
// called shared, must still be there, or the walk sees less in common than it could.
func TestNamedFieldsExist(t *testing.T) {
	fields, types := make(map[string]bool), make(map[reflect.Type]bool)
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		if types[of] {
			return
		}
		types[of] = true
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			visit(of.Elem())
		case reflect.Map:
			visit(of.Key())
			visit(of.Elem())
		case reflect.Struct:
			for f := range of.Fields() {
				fields[of.String()+"."+f.Name] = true
				visit(f.Type)
			}
		}
	}
	visit(reflect.TypeFor[gateway]())
	visit(reflect.TypeFor[sup]())
	for name := range irrelevant {
		require.True(t, fields[name], name)
	}
	names := make(map[string]bool)
	for of := range types {
		names[of.String()] = true
	}
	for name := range shared {
		require.True(t, names[name], name)
	}
}
