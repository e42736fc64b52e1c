// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
)

func Example() {
	err := run([]string{"-gateways", "a=3,b=4,c=2:draining", "-member", "sup-7"}, os.Stdout, os.Stderr)
	fmt.Println(err)
	// Output:
	// a ring of 4099 slots, the largest share 1.020 times the even one
	// even: 7 supervisors on 2 gateways, 3 to 4 each, max/mean 1.14, emptiest a
	// sup-7 -> a (owner): 10 live on 2 gateways, share 5, cap 5
	// ring 126e2d08e5b8d1d2, view 0, 0s old
	//   0  a  ready     3 (3 attached, 0 held, 0 reserved)  chosen: the first below 5
	//   1  c  draining  2 (2 attached, 0 held, 0 reserved)  takes nobody
	//   2  b  ready     4 (4 attached, 0 held, 0 reserved)  after the chosen one
	// <nil>
}

func Example_plan() {
	err := run([]string{"-gateways", "a=10,b=10,c=10", "-plan", "stop a; start a; arrive 10; crash b; settle"}, os.Stdout, os.Stderr)
	fmt.Println(err)
	// Output:
	//             a   b   c  moved
	// now        10  10  10      -
	// stop a      -  15  15     10
	// start a     0  15  15      -
	// arrive 10  10  15  15      -
	// crash b    20   -  20     15
	// settle     20   -  20      -
	// even: 40 supervisors on 2 gateways, 20 to 20 each, max/mean 1.00, emptiest c
	// 15 supervisors move once
	// 5 supervisors move twice
	// warning: 5 supervisors move more than once, up to twice
	// <nil>
}

func Example_both() {
	err := run([]string{"-gateways", "a=1,b=1", "-member", "sup-7", "-plan", "join c; leave 1 from b"}, os.Stdout, os.Stderr)
	fmt.Println(err)
	// Output:
	// a ring of 4099 slots, the largest share 1.020 times the even one
	// even: 2 supervisors on 2 gateways, 1 to 1 each, max/mean 1.00, emptiest b
	// sup-7 -> a (owner): 3 live on 2 gateways, share 1, cap 2
	// ring fa6f7b08506752db, view 0, 0s old
	//   0  a  ready  1 (1 attached, 0 held, 0 reserved)  chosen: the first below 2
	//   1  b  ready  1 (1 attached, 0 held, 0 reserved)  after the chosen one
	//                 a  b  c  moved
	// now             1  1  -      -
	// join c          1  1  0      -
	// leave 1 from b  1  0  0      -
	// even: 1 supervisor on 3 gateways, 0 to 1 each, max/mean 3.00, emptiest c
	// <nil>
}

func TestFaultsNameTheirWord(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-member", "m", "-gateways", "a"}, `-gateways: "a" is not NAME=SUPERVISORS`},
		{[]string{"-member", "m", "-gateways", ""}, `-gateways: "" is not NAME=SUPERVISORS`},
		{[]string{"-member", "m", "-gateways", "a=1,"}, `-gateways: "" is not`},
		{[]string{"-member", "m", "-gateways", "=1"}, `-gateways: "=1" is not`},
		{[]string{"-member", "m", "-gateways", "a=-1"}, `-gateways: "a=-1" is not`},
		{[]string{"-member", "m", "-gateways", "a=many"}, `-gateways: "a=many" is not`},
		{[]string{"-member", "m", "-gateways", "a=1,a=2"}, `-gateways: "a" is there twice`},
		{[]string{"-member", "m", "-gateways", "a=1, a =2"}, `-gateways: "a" is there twice`},
		{[]string{"-member", "m", "-gateways", "b=1,a=1:asleep"}, `-gateways: "a=1:asleep": "asleep" is no state; there are ready, starting, draining and suspect`},
		{[]string{"-member", "m", "-gateways", "a=1:"}, `-gateways: "a=1:": "" is no state`},
		{[]string{"-member", "m", "-gateways", "a=9223372036854775807,b=1"}, `-gateways: "a=9223372036854775807": that is more than 1000000000 supervisors in all`},
		{[]string{"-member", "m", "-gateways", "a=9223372036854775808"}, `-gateways: "a=9223372036854775808": that is more than`},
		{[]string{"-member", "m", "-gateways", "a=-9223372036854775809"}, `-gateways: "a=-9223372036854775809" is not NAME=SUPERVISORS`},
		{[]string{"-member", "m", "-gateways", "a=999999999,b=1,c=1"}, `-gateways: "c=1": that is more than`},
		{[]string{"-gateways", "a=1"}, "-member is empty, and so is -plan"},
		{[]string{"-gateways", "a=1", "-plan", " ; "}, "-member is empty, and so is -plan"},
		{[]string{"-plan", "settle", "-home", "a"}, "-home is of no use without -member"},
		{[]string{"-plan", "settle", "-avoid", "a"}, "-avoid is of no use without -member"},
		{[]string{"-member", "m", "-home", "zzz"}, `-home: there is no gateway "zzz"`},
		{[]string{"-member", "m", "-home", "a"}, `-home: "a" serves nobody`},
		{[]string{"-member", "m", "-avoid", "a,zzz"}, `-avoid: there is no gateway "zzz"`},
		{[]string{"-member", "m", "-avoid", "a,"}, `-avoid: there is no gateway ""`},
		{[]string{"-plan", "stop a; stop x"}, `step 2 (stop x): gateway "x" is unknown`},
		{[]string{"-plan", "stop a; rest a while"}, `step 2 (rest a while): "rest" is no step`},
		{[]string{"-plan", "settle", "5"}, `"5" is no flag; a plan takes quotes`},
		{[]string{"-gateways", "a=100000000", "-plan", "settle"}, `supervisors`},
		{[]string{"-nonsense"}, "nonsense"},
	} {
		var out, err bytes.Buffer
		require.ErrorContains(t, run(c.args, &out, &err), c.want)
		require.Empty(t, out.String()+err.String(), "%q: an error is told once, by whoever gets it", c.args)
	}
}

// A fleet of any size that is allowed takes no time, as long as nothing is predicted.
func TestHugeFleet(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"-gateways", "a=999999999,b=1", "-member", "m"}, &out, io.Discard))
	require.Contains(t, out.String(), "skewed: 1000000000 supervisors on 2 gateways, 1 to 999999999 each, max/mean 2.00, emptiest b; 499999999 moves would make it even")
}

func TestStatesHomeAndAvoid(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"-gateways", " a = 3 : suspect, b=4:starting ,c=2:ready,\td=9", "-member", "m", "-avoid", "c , a", "-home", " d"}, &out, io.Discard))
	for _, want := range []string{
		"m -> d (preferred)", "\nat home at d, avoids c a\n", "suspect", "starting", "the supervisor avoids it", "8 (9 attached, 0 held, 0 reserved; itself left out)",
	} {
		require.Contains(t, out.String(), want)
	}
}

// The help has every state and every kind of step, each as it is read.
func TestHelp(t *testing.T) {
	var out, help bytes.Buffer
	require.ErrorIs(t, run([]string{"-help"}, &out, &help), flag.ErrHelp)
	require.Empty(t, out.String())
	text := help.String()
	for _, want := range []string{"-gateways", "-member", "-home", "-avoid", "-plan", "-json"} {
		require.Contains(t, text, want)
	}
	states, steps, found := strings.Cut(text, "A plan is")
	require.True(t, found)
	for _, line := range indented(states) {
		state, _, _ := strings.Cut(line, " ")
		_, err := parseFleet("a=1:" + state)
		require.NoError(t, err)
	}
	require.Len(t, indented(states), 4)

	kinds := map[string]bool{}
	for _, line := range indented(steps) {
		shown, more, _ := strings.Cut(line, "  ")
		quoted := strings.Split(more, `"`)
		for _, one := range append([]string{shown}, quoted[1:min(2, len(quoted))]...) {
			plan, err := placement.ParsePlan(one)
			require.NoError(t, err)
			require.Equal(t, one, plan.String())
			kinds[fmt.Sprintf("%T", plan[0])] = true
		}
	}
	require.Len(t, kinds, 7, "%v", kinds)
}

// indented returns the lines of a list in the help.
func indented(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if item, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "  "); ok && !strings.HasPrefix(item, "-") && !strings.HasPrefix(item, " ") {
			all = append(all, item)
		}
	}
	return all
}

// What -json prints can be read back, and is what is printed otherwise.
func TestJSON(t *testing.T) {
	args := []string{"-gateways", "a=3,b=4,c=2:draining", "-member", "sup-7", "-home", "a", "-plan", "crash b; start b"}
	var out, text bytes.Buffer
	require.NoError(t, run(append(args, "-json"), &out, io.Discard))
	require.NoError(t, run(args, &text, io.Discard))
	var told report
	in := json.NewDecoder(bytes.NewReader(out.Bytes()))
	in.DisallowUnknownFields()
	require.NoError(t, in.Decode(&told))
	require.False(t, in.More(), "one object")
	var again bytes.Buffer
	told.print(&again)
	require.Equal(t, text.String(), again.String())

	for _, want := range []string{
		`"slots": 4099`, `"fingerprint": "126e2d08e5b8d1d2"`, `"state": "draining"`, `"reason": "preferred"`, `"why": "chosen"`, `"step": "crash b"`,
	} {
		require.Contains(t, out.String(), want)
	}

	for _, c := range []struct{ with, without string }{{"member", "prediction"}, {"plan", "explanation"}} {
		out.Reset()
		require.NoError(t, run([]string{"-" + c.with, "settle", "-json"}, &out, io.Discard))
		require.NotContains(t, out.String(), c.without)
		require.Contains(t, out.String(), `"balance": {`)
	}
}
