// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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
	// even: 7 supervisors on 2 gateways, 3 to 4 each
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
	// even: 40 supervisors on 2 gateways, 20 to 20 each
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
	// even: 2 supervisors on 2 gateways, 1 to 1 each
	// sup-7 -> a (owner): 3 live on 2 gateways, share 1, cap 2
	// ring fa6f7b08506752db, view 0, 0s old
	//   0  a  ready  1 (1 attached, 0 held, 0 reserved)  chosen: the first below 2
	//   1  b  ready  1 (1 attached, 0 held, 0 reserved)  after the chosen one
	//                 a  b  c  moved
	// now             1  1  -      -
	// join c          1  1  0      -
	// leave 1 from b  1  0  0      -
	// even: 1 supervisors on 3 gateways, 0 to 1 each
	// <nil>
}

func TestFaultsNameTheirFlag(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-member", "m", "-gateways", "a"}, `-gateways: "a" is not NAME=SUPERVISORS`},
		{[]string{"-member", "m", "-gateways", "a=-1"}, `-gateways: "a=-1" is not`},
		{[]string{"-member", "m", "-gateways", "a=1,a=2"}, `-gateways: "a" is there twice`},
		{[]string{"-member", "m", "-gateways", "a=1:asleep"}, `no gateway is "asleep"`},
		{[]string{"-gateways", "a=1"}, "-member is empty, and so is -plan"},
		{[]string{"-gateways", "a=1", "-plan", " ; "}, "-member is empty, and so is -plan"},
		{[]string{"-plan", "stop a; stop x"}, `-plan: placement: step 2 (stop x): gateway "x" is unknown`},
		{[]string{"-plan", "stop a; rest  a while"}, `-plan: "rest a while" is no step; one is stop,`},
		{[]string{"-plan", "stop"}, `-plan: "stop" is no step`},
		{[]string{"-plan", "arrive many"}, `-plan: "arrive many" is no step`},
		{[]string{"-plan", "arrive"}, `-plan: "arrive" is no step`},
		{[]string{"-plan", "leave -1"}, `-plan: "leave -1" is no step`},
		{[]string{"-plan", "leave 1 to a"}, `-plan: "leave 1 to a" is no step`},
		{[]string{"-plan", "leave 1 from"}, `-plan: "leave 1 from" is no step`},
		{[]string{"-plan", "settle 0"}, `-plan: "settle 0" is no step`},
		{[]string{"-nonsense"}, "nonsense"},
	} {
		require.ErrorContains(t, run(c.args, io.Discard, io.Discard), c.want)
	}
}

func TestStatesAndAvoid(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"-gateways", "a=3:suspect,b=4:starting,c=2,d=9", "-member", "m", "-avoid", "c", "-home", "d"}, &out, io.Discard))
	for _, want := range []string{"m -> d (preferred)", "suspect", "starting", "the supervisor avoids it"} {
		require.Contains(t, out.String(), want)
	}
}

func TestParsePlan(t *testing.T) {
	plan, err := parsePlan("stop a b; start a; crash c ;join d; arrive 10; leave 3; leave 4 from a; settle; settle 5;")
	require.NoError(t, err)
	require.Equal(t, []placement.Step{
		placement.Stop{"a", "b"}, placement.Start{"a"}, placement.Crash{"c"}, placement.Join{"d"}, placement.Arrive{Count: 10},
		placement.Leave{Count: 3}, placement.Leave{Count: 4, From: "a"}, placement.Settle{}, placement.Settle{Budget: 5},
	}, plan)
	var texts []string
	for _, s := range plan {
		texts = append(texts, s.String())
	}
	again, err := parsePlan(strings.Join(texts, ";"))
	require.NoError(t, err)
	require.Equal(t, plan, again, "a step's text is read as that step")
}
