// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/ring"
)

func TestActs(t *testing.T) {
	words := [...]string{start: "start", stop: "stop", crash: "crash", arrive: "arrive", comeBack: "come back", split: "split", heal: "heal", settle: "settle"}
	for _, c := range []struct {
		cfg           Config
		acts, circles string
	}{
		{
			Config{Plan: Rolling, Gateways: 2, Supervisors: 5, Surge: true, Settle: true},
			"start gw-0 gw-1; arrive 5; start gw-2; stop gw-0; start gw-3; stop gw-1; settle",
			"gw-0 gw-1; gw-0 gw-1 gw-2; gw-1 gw-2; gw-1 gw-2 gw-3; gw-2 gw-3",
		},
		{
			Config{Plan: Rolling, Gateways: 2, Supervisors: 5},
			"start gw-0 gw-1; arrive 5; stop gw-0; start gw-0; stop gw-1; start gw-1",
			"gw-0 gw-1; gw-1; gw-1 gw-0; gw-0; gw-0 gw-1",
		},
		{Config{Plan: Crash, Gateways: 3, Supervisors: 5}, "start gw-0 gw-1 gw-2; arrive 5; crash gw-0", "gw-0 gw-1 gw-2; gw-1 gw-2"},
		{Config{Plan: Burst, Gateways: 2, Supervisors: 5}, "start gw-0 gw-1; arrive 5; come back", "gw-0 gw-1"},
		{Config{Plan: ScaleUp, Gateways: 3, Supervisors: 10}, "start gw-0; arrive 3; start gw-1 gw-2; arrive 7", "gw-0; gw-0 gw-1 gw-2"},
		{
			Config{Plan: Partition, Gateways: 3, Supervisors: 20, Settle: true},
			"start gw-0 gw-1 gw-2; arrive 18; split gw-0; arrive 2; heal; settle",
			"gw-0 gw-1 gw-2; gw-0; gw-1 gw-2; gw-0 gw-1 gw-2",
		},
	} {
		var acts, circles []string
		for a := range c.cfg.acts() {
			text := words[a.kind]
			for _, id := range a.ids {
				text += " " + string(id)
			}
			if a.count > 0 {
				text += fmt.Sprint(" ", a.count)
			}
			acts = append(acts, text)
		}
		taken := 0
		for a := range c.cfg.acts() {
			taken += a.kind.circles()
		}
		for ids := range c.cfg.circles() {
			circles = append(circles, strings.Join(text(ids), " "))
		}
		require.Equal(t, c.acts, strings.Join(acts, "; "))
		require.Equal(t, c.circles, strings.Join(circles, "; "))
		require.Len(t, circles, taken)
	}
}

func text(ids []ring.GatewayID) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return all
}

// Both sequences may be left at any place.
func TestActsLeft(t *testing.T) {
	for _, plan := range Plans() {
		cfg := Config{Plan: plan, Gateways: 2, Supervisors: 2, Settle: true}
		for i := range len(slices.Collect(cfg.acts())) {
			n := 0
			for range cfg.acts() {
				if n++; n > i {
					break
				}
			}
			require.Equal(t, i+1, n)
			for range cfg.circles() {
				if n--; n == 0 {
					break
				}
			}
		}
	}
}

func TestValidate(t *testing.T) {
	good := Config{Plan: Rolling, Gateways: 2, Supervisors: 1}
	require.NoError(t, good.Validate())
	for field, bad := range map[string]Config{
		"Plan":        {Plan: "storm", Gateways: 2, Supervisors: 1},
		"Gateways":    {Plan: Rolling, Gateways: 1, Supervisors: 1},
		"Supervisors": {Plan: Rolling, Gateways: 2},
	} {
		_, err := Run(t.Context(), bad, nil)
		require.ErrorContains(t, err, "scale: Config."+field)
	}
	err := Config{Gateways: MaxGateways + 1, Supervisors: MaxSupervisors + 1}.Validate()
	for _, field := range []string{"Plan", "Gateways", "Supervisors"} {
		require.ErrorContains(t, err, field)
	}
}

// IDs are in the order of the numbers, whatever batch they are made in.
func TestNamed(t *testing.T) {
	members := []uint32{0, 9, 10, 123456789, last - 1}
	for m := range uint32(2500) {
		members = append(members, 7*m)
	}
	i := 0
	for m, id := range named(slices.Values(members)) {
		require.Equal(t, members[i], m)
		require.Equal(t, ring.MemberID(fmt.Sprintf("s%010d", m)), id)
		i++
	}
	require.Len(t, members, i)
	for m := range named(slices.Values(members)) {
		require.Zero(t, m)
		break
	}
}

func TestScattered(t *testing.T) {
	for n := range 300 {
		f := &fleet{arrived: n}
		all := slices.Collect(f.scattered())
		require.Len(t, all, n)
		for i := 1; i < n && n > 6; i++ {
			require.NotEqual(t, all[i-1]+1, all[i])
		}
		slices.Sort(all)
		require.Equal(t, slices.Collect(sequence(0, n)), all)
	}
}
