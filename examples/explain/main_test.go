// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func Example() {
	err := run([]string{"-gateways", "a=3,b=4,c=2:draining", "-member", "sup-7"}, os.Stdout, os.Stderr)
	fmt.Println(err)
	// Output:
	// ring 126e2d08e5b8d1d2: 4099 slots, the largest share is 1.020 times the even one
	// even: 7 supervisors on 2 gateways, 3 to 4 each
	// sup-7 -> a (owner): 10 live, share 5, cap 5, view 0, 0s old
	//   0  a  3 (3 attached, 0 held, 0 reserved)  chosen: the first below 5
	//   1  c  2 (2 attached, 0 held, 0 reserved)  draining
	//   2  b  4 (4 attached, 0 held, 0 reserved)  after the chosen one
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
		{[]string{"-gateways", "a=1"}, "-member is empty"},
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
