// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/evenring/evenring/placement/roster"
)

// The machines of a gateway have no Clone, and need none in production. Here
// they are copied, and told apart, by reflection: whatever fields they get,
// the walk follows, except where a field is named below.

// shared are types whose values are immutable: copies point to the same.
var shared = map[string]bool{
	"*ring.Ring":        true,
	"*placement.layout": true,
	"*time.Location":    true,
}

// irrelevant are fields that decide nothing: configs, counters, caches, names
// that never leave a process, and second ways to what is there already.
var irrelevant = map[string]bool{
	"redirect.Admission.cfg":     true,
	"redirect.Admission.tally":   true,
	"redirect.Admission.picture": true,
	"redirect.Admission.lastKey": true,
	"redirect.Admission.owners":  true,
	"redirect.seat.key":          true,
	"redirect.Admitting.Key":     true,
	"redirect.Admitting.Verdict": true,
	"redirect.Admitting.Asked":   true,
	"placement.Ledger.view":      true,
	"placement.promise.at":       true,
	"placement.Decision.Version": true,
	"placement.Decision.Age":     true,
	"roster.Roster.cfg":          true,
	"roster.Roster.byID":         true,
	"roster.Roster.vacant":       true,
	"roster.Roster.circle":       true,
	"roster.Roster.stale":        true,
	"roster.Roster.version":      true,
	"roster.Roster.stats":        true,
	"roster.Roster.cut":          true,
	"roster.claims.places":       true,
	"roster.claims.chunks":       true,
	"roster.claims.used":         true,
	"roster.claims.free":         true,
	"roster.claims.records":      true,
	"roster.claims.now":          true,
	"roster.record.slot":         true,
	"roster.record.anchor":       true,
	"handoff.Machine.cfg":        true,
	"handoff.Machine.byID":       true,
	"handoff.Machine.turns":      true,
	"handoff.member.place":       true,
	"supervisor.Machine.cfg":     true,
	"supervisor.attempt.passed":  true,
	"explore.pending.put":        true,
	"explore.opened.key":         true,
}

// layout is what there is to know of a type.
type layout struct {
	name   string
	flat   bool  // a plain assignment copies it
	told   []int // the fields that tell two values apart
	claims bool  // roster's store of entries
}

// layouts belong to one walk.
type layouts map[reflect.Type]*layout

func (ls layouts) of(t reflect.Type) *layout {
	if l := ls[t]; l != nil {
		return l
	}
	l := &layout{name: t.String()}
	ls[t] = l
	switch t.Kind() {
	case reflect.Pointer:
		l.flat = shared[l.name]
	case reflect.Slice, reflect.Map, reflect.Interface, reflect.Chan, reflect.UnsafePointer:
	case reflect.Array:
		l.flat = ls.of(t.Elem()).flat
	case reflect.Struct:
		l.flat = true
		l.claims = l.name == "roster.claims"
		for i := range t.NumField() {
			f := t.Field(i)
			if !irrelevant[l.name+"."+f.Name] {
				l.told = append(l.told, i)
			}
			l.flat = l.flat && (l.name == "time.Time" || ls.of(f.Type).flat)
		}
	default:
		l.flat = true // numbers, strings and funcs
	}
	return l
}

// open makes a value that was reached through private fields writable.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// clone returns a deep copy of what p points to. Pointers to one thing stay
// pointers to one thing.
func clone[T any](ls layouts, p *T) *T {
	c := copier{layouts: ls, seen: make(map[unsafe.Pointer]reflect.Value)}
	return c.pointer(reflect.ValueOf(p)).Interface().(*T)
}

type copier struct {
	layouts layouts
	seen    map[unsafe.Pointer]reflect.Value
}

func (c *copier) pointer(v reflect.Value) reflect.Value {
	if v.IsNil() || c.layouts.of(v.Type()).flat {
		return v
	}
	if to, ok := c.seen[v.UnsafePointer()]; ok && to.Type() == v.Type() {
		return to
	}
	to := reflect.New(v.Type().Elem())
	c.seen[v.UnsafePointer()] = to
	c.into(to.Elem(), v.Elem())
	return to
}

// into copies from into to, which can be written to.
func (c *copier) into(to, from reflect.Value) {
	l := c.layouts.of(from.Type())
	if l.flat {
		to.Set(from)
		return
	}
	switch from.Kind() {
	case reflect.Pointer:
		to.Set(c.pointer(from))
	case reflect.Interface:
		if !from.IsNil() {
			one := reflect.New(from.Elem().Type()).Elem()
			source := reflect.New(from.Elem().Type()).Elem()
			source.Set(from.Elem())
			c.into(one, source)
			to.Set(one)
		}
	case reflect.Slice:
		c.slice(to, from, from.Len())
	case reflect.Array:
		for i := range from.Len() {
			c.into(to.Index(i), from.Index(i))
		}
	case reflect.Map:
		c.table(to, from)
	case reflect.Struct:
		for i := range from.NumField() {
			c.into(open(to.Field(i)), open(from.Field(i)))
		}
		if l.claims {
			c.chunks(open(to.FieldByName("chunks")))
		}
	default:
		panic(fmt.Sprintf("explore: cannot copy a %s", l.name))
	}
}

func (c *copier) slice(to, from reflect.Value, n int) {
	if from.IsNil() {
		return
	}
	to.Set(reflect.MakeSlice(from.Type(), n, n))
	if c.layouts.of(from.Type().Elem()).flat {
		reflect.Copy(to, from)
		return
	}
	for i := range from.Len() {
		c.into(to.Index(i), from.Index(i))
	}
}

func (c *copier) table(to, from reflect.Value) {
	if from.IsNil() {
		return
	}
	to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
	keys, values := reflect.New(from.Type().Key()).Elem(), reflect.New(from.Type().Elem()).Elem()
	for it := from.MapRange(); it.Next(); {
		keys.SetIterKey(it)
		values.SetIterValue(it)
		value := reflect.New(values.Type()).Elem()
		c.into(value, values)
		to.SetMapIndex(keys, value)
	}
}

// spare is how many claims one step may add. The roster makes long chunks of them; what is stored here
// is cut to those in use, for there is a roster for every state, and what is copied has so many more.
const spare = 32

func (c *copier) chunks(chunks reflect.Value) {
	for i := range chunks.Len() {
		n := chunks.Index(i).Len() + spare
		long := reflect.MakeSlice(chunks.Type().Elem(), n, n)
		reflect.Copy(long, chunks.Index(i))
		chunks.Index(i).Set(long)
	}
}

// trim cuts the chunks of a roster that is stored.
func trim(r *roster.Roster) {
	claims := reflect.ValueOf(r).Elem().FieldByName("claims")
	chunks, used := open(claims.FieldByName("chunks")), int(claims.FieldByName("used").Uint())
	if chunks.Len() > 1 {
		panic("explore: too many claims for one chunk")
	}
	for i := range chunks.Len() {
		long := chunks.Index(i)
		n := min(long.Len(), used)
		short := reflect.MakeSlice(long.Type(), n, n)
		reflect.Copy(short, long)
		long.Set(short)
	}
}

// mark is a value's fingerprint: equal marks are the same state.
type mark [2]uint64

// printer writes down what tells values apart.
type printer struct {
	layouts layouts
	buf     []byte
	depth   int
}

// of returns the fingerprint of what p points to.
func (p *printer) of(v any) mark {
	p.buf = p.buf[:0]
	p.add(reflect.ValueOf(v).Elem())
	return markOf(p.buf)
}

func markOf(b []byte) mark {
	first := xxhash.Sum64(b)
	var salted xxhash.Digest
	salted.ResetWithSeed(first | 1)
	_, _ = salted.Write(b)
	return mark{first, salted.Sum64()}
}

func (p *printer) number(n uint64) { p.buf = binary.AppendUvarint(p.buf, n) }

func (p *printer) text(s string) {
	p.number(uint64(len(s)))
	p.buf = append(p.buf, s...)
}

var timeType = reflect.TypeFor[time.Time]()

func (p *printer) add(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			p.buf = append(p.buf, 1)
		} else {
			p.buf = append(p.buf, 0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		p.number(v.Uint())
	case reflect.Float64, reflect.Float32:
		p.number(math.Float64bits(v.Float()))
	case reflect.String:
		p.text(v.String())
	case reflect.Func:
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			p.buf = append(p.buf, 0)
			return
		}
		p.buf = append(p.buf, 1)
		if v.Kind() == reflect.Interface {
			p.text(v.Elem().Type().String())
		}
		if p.depth++; p.depth > 50 {
			panic("explore: a circle of pointers")
		}
		p.add(v.Elem())
		p.depth--
	case reflect.Slice, reflect.Array:
		p.number(uint64(v.Len()))
		for i := range v.Len() {
			p.add(v.Index(i))
		}
	case reflect.Map:
		p.table(v)
	case reflect.Struct:
		p.record(v)
	default:
		panic("explore: cannot tell apart values of " + v.Type().String())
	}
}

// table writes a map in an order that does not depend on the map.
func (p *printer) table(v reflect.Value) {
	p.number(uint64(v.Len()))
	outer := p.buf
	var rows [][]byte
	for it := v.MapRange(); it.Next(); {
		p.buf = nil
		p.add(it.Key())
		p.add(it.Value())
		rows = append(rows, p.buf)
	}
	p.buf = outer
	slices.SortFunc(rows, slices.Compare)
	for _, row := range rows {
		p.buf = append(p.buf, row...)
	}
}

func (p *printer) record(v reflect.Value) {
	if v.Type() == timeType {
		p.add(v.Field(0)) // times here have no monotonic part, and one location
		p.add(v.Field(1))
		return
	}
	l := p.layouts.of(v.Type())
	for _, i := range l.told {
		p.add(v.Field(i))
	}
	if l.name == "roster.Roster" { // the order of claims means nothing
		p.entries(v.Addr().UnsafePointer())
	}
}

// entries writes down whom a roster lists for whom.
func (p *printer) entries(at unsafe.Pointer) {
	r := (*roster.Roster)(at)
	for g := range r.Gateways() {
		entries := slices.SortedFunc(r.Members(g.ID), func(a, b roster.Entry) int { return cmp.Compare(a.Member, b.Member) })
		p.number(uint64(len(entries)))
		for _, e := range entries {
			p.text(string(e.Member))
			p.number(uint64(e.Generation))
			p.add(reflect.ValueOf(e.Held))
		}
	}
}
