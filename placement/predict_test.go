// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

func ExamplePredict() {
	circle, err := ring.New(ring.Config{}, "a", "b", "c")
	if err != nil {
		fmt.Println(err)
		return
	}
	picture := placement.Picture{Ring: circle, Live: 30}
	for i, id := range []ring.GatewayID{"a", "b", "c"} {
		picture.Gateways = append(picture.Gateways, placement.Gateway{ID: id, Endpoint: string(id) + ":7000", State: placement.Ready, Known: true,
			Counts: placement.Counts{Incarnation: placement.Incarnation(i + 1), Attached: 10}})
	}
	view := placement.NewView(picture)
	without, err := placement.Predict(view, nil,
		placement.Stop{"a"}, placement.Start{"a"}, placement.Stop{"b"}, placement.Start{"b"}, placement.Stop{"c"}, placement.Start{"c"})
	fmt.Println(without, err)
	with, err := placement.Predict(view, nil,
		placement.Join{"d"}, placement.Stop{"a"}, placement.Join{"e"}, placement.Stop{"b"}, placement.Join{"f"}, placement.Stop{"c"})
	fmt.Println(with, err)
	// Output:
	//           a   b   c  moved
	// now      10  10  10      -
	// stop a    -  15  15     10
	// start a   0  15  15      -
	// stop b   15   -  15     15
	// start b  15   0  15      -
	// stop c   15  15   -     15
	// start c  15  15   0      -
	// skewed: 30 supervisors on 3 gateways, 0 to 15 each, max/mean 1.50, emptiest c; 10 moves would make it even
	// 20 supervisors move once
	// 10 supervisors move twice
	// warning: a rolling restart without surge leaves the last gateway empty (c): nobody moves because a gateway starts; start each replacement before the old one stops, or settle afterwards
	// warning: the plan ends uneven, with 0 to 15 supervisors on a gateway: a settle would take 10 moves
	// warning: 10 supervisors move more than once, up to twice
	//  <nil>
	//          a   b   c   d   e   f  moved
	// now     10  10  10   -   -   -      -
	// join d  10  10  10   0   -   -      -
	// stop a   -  10  10  10   -   -     10
	// join e   -  10  10  10   0   -      -
	// stop b   -   -  10  10  10   -     10
	// join f   -   -  10  10  10   0      -
	// stop c   -   -   -  10  10  10     10
	// even: 30 supervisors on 3 gateways, 10 to 10 each, max/mean 1.00, emptiest f
	// 30 supervisors move once
	//  <nil>
}

// predict runs a plan that can be carried out.
func predict(t testing.TB, v *placement.View, plan ...placement.Step) placement.Prediction {
	t.Helper()
	p, err := placement.Predict(v, nil, plan...)
	require.NoError(t, err)
	require.Len(t, p.Steps, len(plan))
	return p
}

// served tells the counts of every step, after the first.
func served(p placement.Prediction) string {
	var rows []string
	for _, o := range p.Steps {
		var row []string
		for _, id := range slices.Sorted(maps.Keys(o.Served)) {
			row = append(row, fmt.Sprint(id, ":", o.Served[id]))
		}
		if o.Waiting > 0 {
			row = append(row, fmt.Sprint("waiting:", o.Waiting))
		}
		rows = append(rows, strings.Join(row, " "))
	}
	return strings.Join(rows, ", ")
}

func TestPredict(t *testing.T) {
	type plan = []placement.Step
	for _, c := range []struct {
		name   string
		loads  []int
		change func([]placement.Gateway)
		plan   plan
		want   string
		moves  []int
		warn   []string
	}{
		{
			name: "S16: two and two", loads: []int{1, 1},
			plan: plan{
				placement.Stop{"A"}, placement.Start{"A"}, placement.Stop{"B"}, placement.Start{"B"},
				placement.Settle{Budget: 1}, placement.Settle{Budget: 1},
			},
			want:  "B:2, A:0 B:2, A:2, A:2 B:0, A:1 B:1, A:1 B:1",
			moves: []int{0, 1, 0, 1},
			warn:  []string{"1 supervisor moves more than once, up to 3 times"},
		},
		{
			name: "S16: and without a settle", loads: []int{1, 1},
			plan: plan{placement.Stop{"A"}, placement.Start{"A"}, placement.Stop{"B"}, placement.Start{"B"}},
			want: "B:2, A:0 B:2, A:2, A:2 B:0", moves: []int{0, 1, 1},
			warn: []string{
				"a rolling restart without surge leaves the last gateway empty (B): nobody moves because a gateway starts; start each replacement before the old one stops, or settle afterwards",
				"the plan ends uneven, with 0 to 2 supervisors on a gateway: a settle would take 1 move",
				"1 supervisor moves more than once, up to twice",
			},
		},
		{
			name: "a rolling restart without surge, and some arrive", loads: []int{3, 3},
			plan: plan{placement.Stop{"A"}, placement.Start{"A"}, placement.Stop{"B"}, placement.Start{"B"}, placement.Arrive{Count: 2}},
			want: "B:6, A:0 B:6, A:6, A:6 B:0, A:6 B:2", moves: []int{2, 3, 3},
			warn: []string{
				"a rolling restart without surge leaves the last gateway behind (B, with 2): nobody moves because a gateway starts; start each replacement before the old one stops, or settle afterwards",
				"the plan ends uneven, with 2 to 6 supervisors on a gateway: a settle would take 2 moves",
				"3 supervisors move more than once, up to twice",
			},
		},
		{name: "W1: all restart at once", loads: []int{10, 10, 10}, plan: plan{placement.Crash{"A", "B", "C"}, placement.Start{"A", "B", "C"}},
			want: "waiting:30, A:10 B:10 C:10", moves: []int{8, 22}, // as newcomers: whoever is quicker than his patience goes home
			warn: []string{"step 1 (crash A B C): no gateway is left that may be given supervisors; 30 supervisors wait until one starts"}},
		{name: "W2: one restarts", loads: []int{10, 10, 10}, plan: plan{placement.Stop{"A"}, placement.Start{"A"}, placement.Settle{}},
			want: "B:15 C:15, A:0 B:15 C:15, A:10 B:10 C:10", moves: []int{20, 0, 10},
			warn: []string{"10 supervisors move more than once, up to twice"}}, // those whom the stop had displaced
		{name: "W4: one joins", loads: []int{15, 15}, plan: plan{placement.Join{"C"}, placement.Arrive{Count: 15}},
			want: "A:15 B:15 C:0, A:15 B:15 C:15", moves: []int{45}},
		{name: "W7: one stops", loads: []int{10, 10, 10}, plan: plan{placement.Stop{"B"}}, want: "A:15 C:15", moves: []int{20, 10}},
		{name: "W8: a new one is ready first", loads: []int{15, 15}, plan: plan{placement.Join{"C"}, placement.Stop{"A"}},
			want: "A:15 B:15 C:0, B:15 C:15", moves: []int{15, 15}},
		{name: "S14: a crash", loads: []int{10, 10, 10}, plan: plan{placement.Crash{"C"}}, want: "A:15 B:15", moves: []int{20, 10}},
		{name: "S17: nothing to settle", loads: []int{3, 2}, plan: plan{placement.Settle{}}, want: "A:3 B:2", moves: []int{5}},
		{name: "S35: two stop together", loads: []int{4, 4, 0}, plan: plan{placement.Stop{"A", "B"}}, want: "C:8", moves: []int{0, 8}},
		{
			name: "the last one stops", loads: []int{2}, plan: plan{placement.Stop{"A"}, placement.Arrive{Count: 1}, placement.Settle{}, placement.Join{"B"}},
			want: "waiting:2, waiting:3, waiting:3, B:3", moves: []int{1, 2},
			warn: []string{
				"step 1 (stop A): no gateway is left that may be given supervisors; 2 supervisors wait until one starts",
				"step 2 (arrive 1): no gateway is left that may be given supervisors; 3 supervisors wait until one starts",
				"step 3 (settle): it is not possible, for no gateway may be given supervisors",
			},
		},
		{
			name: "and nobody comes up", loads: []int{1, 0}, plan: plan{placement.Stop{"B"}, placement.Crash{"A"}}, want: "A:1, waiting:1", moves: []int{1},
			warn: []string{
				"step 2 (crash A): no gateway is left that may be given supervisors; 1 supervisor waits until one starts",
				"1 supervisor waits for a gateway at the end: start one",
			},
		},
		{
			name: "an empty one is the last", loads: []int{0}, plan: plan{placement.Stop{"A"}, placement.Start{"A"}}, want: ", A:0", moves: nil,
			warn: []string{"step 1 (stop A): no gateway is left that may be given supervisors"},
		},
		{name: "those who wait and come back to where they were have not moved", loads: []int{2}, plan: plan{placement.Stop{"A"}, placement.Start{"A"}},
			want: "waiting:2, A:2", moves: []int{2},
			warn: []string{"step 1 (stop A): no gateway is left that may be given supervisors; 2 supervisors wait until one starts"}},
		{name: "some leave", loads: []int{4, 4}, plan: plan{placement.Leave{Count: 3, From: "B"}, placement.Leave{Count: 5}, placement.Leave{}},
			want: "A:4 B:1, A:0 B:0, A:0 B:0", moves: []int{8}},
		{name: "those who wait may leave", loads: []int{4}, plan: plan{placement.Stop{"A"}, placement.Leave{Count: 3}, placement.Start{"A"}},
			want: "waiting:4, waiting:1, A:1", moves: []int{4},
			warn: []string{"step 1 (stop A): no gateway is left that may be given supervisors; 4 supervisors wait until one starts"}},
		{name: "a budget that does not suffice", loads: []int{9, 0}, plan: plan{placement.Settle{Budget: 2}}, want: "A:7 B:2", moves: []int{7, 2},
			warn: []string{
				"step 1 (settle 2): its budget does not suffice: 2 more moves would make it even",
				"the plan ends uneven, with 2 to 7 supervisors on a gateway: a settle would take 2 moves",
			}},
		{
			name: "S33: one without an endpoint is not settled on, whoever looks", loads: []int{0, 4}, change: func(all []placement.Gateway) { all[0].Endpoint = "" },
			plan: plan{placement.Settle{}}, want: "A:0 B:4", moves: []int{4},
			warn: []string{
				"step 1 (settle): it is not possible to make it even, for A has no endpoint and nobody can be sent there",
				"the plan ends uneven, with 0 to 4 supervisors on a gateway: a settle cannot mend that, for A has no endpoint and nobody can be sent there",
			},
		},
		{
			name: "S33: only moves that can be made are promised", loads: []int{9, 0, 0}, change: func(all []placement.Gateway) { all[1].Endpoint = "" },
			plan: plan{placement.Settle{Budget: 3}, placement.Settle{Budget: 1}, placement.Settle{}}, want: "A:6 B:0 C:3, A:5 B:0 C:4, A:5 B:0 C:4", moves: []int{5, 4},
			warn: []string{
				"step 1 (settle 3): its budget does not suffice: 1 more move would make it as even as can be, for B has no endpoint and nobody can be sent there",
				"step 2 (settle 1): it is not possible to make it even, for B has no endpoint and nobody can be sent there",
				"step 3 (settle): it is not possible to make it even, for B has no endpoint and nobody can be sent there",
				"the plan ends uneven, with 0 to 5 supervisors on a gateway: a settle cannot mend that, for B has no endpoint and nobody can be sent there",
			},
		},
		{
			name: "S33: nor at the end", loads: []int{9, 0, 0, 0}, change: func(all []placement.Gateway) { all[1].Endpoint, all[2].Endpoint = "", "" },
			plan: plan{placement.Leave{}}, want: "A:9 B:0 C:0 D:0", moves: []int{9},
			warn: []string{"the plan ends uneven, with 0 to 9 supervisors on a gateway: a settle would take 4 moves to make it as even as can be, for B, C have no endpoint and nobody can be sent there"},
		},
		{
			name: "a settle waits for one that drains, and gives up", loads: []int{9, 0, 1}, change: func(all []placement.Gateway) { all[2].State = placement.Draining },
			plan: plan{placement.Settle{}, placement.Stop{"C"}, placement.Settle{}}, want: "A:9 B:0 C:1, A:9 B:1, A:5 B:5", moves: []int{5, 5},
			warn: []string{`step 1 (settle): it moves nobody and gives up, for gateway "C" is draining`},
		},
		{
			name: "and at the end", loads: []int{9, 0, 1, 3}, change: func(all []placement.Gateway) { all[2].Suspect, all[3].State = true, placement.Starting },
			plan: plan{placement.Settle{}}, want: "A:9 B:0 C:1 D:3", moves: []int{13},
			warn: []string{
				`step 1 (settle): it moves nobody and gives up, for gateway "C" is suspect`,
				"1 supervisor is on C at the end, which is suspect and does not count for the balance",
				"3 supervisors are on D at the end, which is starting and does not count for the balance",
				`the plan ends uneven, with 0 to 9 supervisors on a gateway: a settle would move nobody, for gateway "C" is suspect`,
			},
		},
		{
			name: "the budget is each gateway's", loads: []int{9, 9, 0, 0}, plan: plan{placement.Settle{Budget: 2}}, want: "A:7 B:7 C:2 D:2", moves: []int{14, 4},
			warn: []string{
				"step 1 (settle 2): its budget does not suffice: 4 more moves would make it even",
				"the plan ends uneven, with 2 to 7 supervisors on a gateway: a settle would take 4 moves",
			},
		},
		{
			name: "one that has spent its budget leaves its turn to others", loads: []int{5, 4, 4, 0}, plan: plan{placement.Settle{Budget: 1}}, want: "A:4 B:3 C:3 D:3", moves: []int{10, 3},
		},
		{
			name: "S33: another without an endpoint", loads: []int{4, 0}, change: func(all []placement.Gateway) { all[1].Endpoint = "" },
			plan: plan{placement.Settle{}, placement.Arrive{Count: 1}, placement.Stop{"A"}}, want: "A:4 B:0, A:5 B:0, B:0 waiting:5", moves: []int{5},
			warn: []string{
				"step 1 (settle): it is not possible to make it even, for B has no endpoint and nobody can be sent there",
				"step 3 (stop A): no gateway is left that may be given supervisors; 5 supervisors wait until one starts",
				"5 supervisors wait for a gateway at the end: start one",
			},
		},
		{
			name: "one is starting, one drains and one is suspect", loads: []int{0, 4, 4, 4}, change: func(all []placement.Gateway) {
				all[0].State, all[1].State, all[2].Suspect = placement.Starting, placement.Draining, true
			},
			plan: plan{placement.Start{"A"}, placement.Stop{"B"}, placement.Crash{"C"}},
			want: "A:0 B:4 C:4 D:4, A:2 C:4 D:6, A:6 D:6", moves: []int{4, 8},
		},
		{
			name: "held, reserved and promised are there", loads: []int{1, 4}, change: func(all []placement.Gateway) {
				all[0].Held, all[0].Reserved, all[0].Promised = 1, 1, 2
			},
			plan: plan{placement.Leave{}}, want: "A:5 B:4", moves: []int{9},
		},
		{
			name: "nobody is where it is not known", loads: []int{7, 4}, change: func(all []placement.Gateway) { all[0].Known = false },
			plan: plan{placement.Arrive{Count: 1}}, want: "B:5", moves: []int{5},
			warn: []string{"it is not known how many supervisors A serves: they are left out"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := gateways(c.loads...)
			if c.change != nil {
				c.change(all)
			}
			p := predict(t, view(t, all), c.plan...)
			require.Equal(t, c.want, served(p), "\n%s", p)
			require.Equal(t, c.warn, p.Warnings)
			require.Equal(t, c.moves, p.Moves, "\n%s", p)
			for i, o := range p.Steps {
				require.Equal(t, c.plan[i], o.Step)
			}
		})
	}
}

func TestPredictL3(t *testing.T) {
	loads := slices.Repeat([]int{5000}, 10)
	p := predict(t, view(t, gateways(loads...)),
		placement.Crash{"D"}, placement.Join{"X"}, placement.Stop{"A"}, placement.Join{"Y"}, placement.Stop{"B"}, placement.Settle{})
	require.Equal(t, []int{5555, 5555, 5555, 5555, 5556, 5556, 5556, 5556, 5556}, sizes(p.Steps[0].Served))
	require.Equal(t, 5000, p.Steps[0].Moved)
	end := p.After()
	require.Equal(t, 50_000, end.Balance.Total)
	require.True(t, end.Balance.Even(), "%s", p)
}

// A rolling restart is blamed for what it does, and for nothing else.
func TestPredictRollingRestart(t *testing.T) {
	for _, c := range []struct {
		name  string
		loads []int
		plan  string
		want  string // how it leaves the last gateway; empty: it is not blamed
	}{
		{name: "W3", loads: []int{10, 10, 10}, plan: "stop A; start A; stop B; start B; stop C; start C", want: "empty (C)"},
		{name: "under new names", loads: []int{5, 5}, plan: "stop A; join X; stop B; join Y", want: "empty (Y)"},
		{name: "one crash after the other", loads: []int{10, 10, 10}, plan: "crash A; start A; crash B; start B; crash C; start C", want: "empty (C)"},
		{name: "in pairs", loads: []int{6, 6, 6, 6}, plan: "stop A B; start A B; stop C D; start C D", want: "empty (C, D)"},
		{name: "with some who came", loads: []int{3, 3}, plan: "stop A; start A; stop B; start B; arrive 2", want: "behind (B, with 2)"},
		{name: "and some who went elsewhere", loads: []int{10, 10, 10}, plan: "stop A; start A; stop B; start B; leave 5 from A", want: "empty (B)"},
		{name: "with one more than before", loads: []int{10, 10}, plan: "join C; settle; stop A; start A; stop B; start B", want: "empty (B)"},
		{name: "all at once", loads: []int{10, 10, 10}, plan: "stop A B; start A B"},
		{name: "one alone", loads: []int{10, 10, 10}, plan: "stop A; start A"},
		{name: "one again and again", loads: []int{10, 10, 10}, plan: "stop A; start A; stop A; start A"},
		{name: "settled each time", loads: []int{10, 10, 10}, plan: "stop A; start A; settle; stop B; start B; settle; leave 8 from B"},
		{name: "filled up each time", loads: []int{10, 10, 10}, plan: "stop A; start A; arrive 15; stop B; start B"},
		{name: "with some who went before", loads: []int{10, 10, 10}, plan: "leave 10 from C; stop A; start A; stop B; start B; stop C; start C", want: "empty (C)"},
		{name: "filled up, and then they leave", loads: []int{10, 10, 10}, plan: "stop A; start A; stop B; start B; arrive 14; leave 14 from B"},
		{name: "it would not be the emptiest if they had not left", loads: []int{10, 10, 10}, plan: "stop A; start A; stop B; start B; arrive 10; leave 5 from B; leave 6 from A; leave 6 from C"},
		{name: "somebody stands worse", loads: []int{10, 10, 10}, plan: "stop A; start A; stop B; start B; arrive 6; leave 15 from A"},
		{name: "surge, and then one more", loads: []int{10, 10, 10}, plan: "join D; stop A; join E; stop B; join F; stop C; join G"},
		{name: "first fewer, then more", loads: []int{10, 10, 10, 10}, plan: "stop A; stop B; join X; join Y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, err := placement.ParsePlan(c.plan)
			require.NoError(t, err)
			p := predict(t, view(t, gateways(c.loads...)), plan...)
			require.False(t, p.After().Balance.Even(), "\n%s", p)
			got := ""
			for _, w := range p.Warnings {
				if rest, ok := strings.CutPrefix(w, "a rolling restart without surge leaves the last gateway "); ok {
					got, _, _ = strings.Cut(rest, ":")
				}
			}
			require.Equal(t, c.want, got, "\n%s", p)
		})
	}
}

// A gateway may be called like those who arrive.
func TestPredictNamesAreTakenOnce(t *testing.T) {
	all := gateways(2, 3)
	all[0].ID, all[0].Endpoint = "arrival", "arrival"
	p := predict(t, view(t, all), placement.Arrive{Count: 5}, placement.Stop{"arrival", "B"}, placement.Join{"C"})
	require.Equal(t, []int{0, 10}, p.Moves)
	require.Len(t, p.Movers, 10)
}

// What is not known is not 0; whoever is on a gateway that takes nobody is not passed over in silence.
func TestPredictUnknownLoads(t *testing.T) {
	all := gateways(7, 4, 2)
	all[0].Known, all[2].State = false, placement.Draining
	p := predict(t, view(t, all), placement.Arrive{Count: 1}, placement.Crash{"A"})
	require.Equal(t, []ring.GatewayID{"A"}, p.Before.Unknown)
	require.Equal(t, map[ring.GatewayID]int{"B": 4, "C": 2}, p.Before.Served)
	require.Empty(t, p.After().Unknown)
	require.Equal(t, []string{
		"it is not known how many supervisors A serves: they are left out",
		"2 supervisors are on C at the end, which is draining and does not count for the balance",
	}, p.Warnings)
	require.Contains(t, p.String(), "now       ?  4  2 ")
	require.Contains(t, p.String(), "crash A   -  5  2 ")

	told, err := placement.Predict(view(t, all), map[ring.GatewayID][]ring.MemberID{"A": {"m", "n"}})
	require.NoError(t, err)
	require.Empty(t, told.Before.Unknown, "who is told is known")
	require.Equal(t, 2, told.Before.Served["A"])
	require.NotContains(t, strings.Join(told.Warnings, "\n"), "not known")
}

func TestPredictLimit(t *testing.T) {
	const huge = math.MaxInt
	const want = "there are more than 10000000 supervisors in all, which is the limit"
	for _, c := range []struct {
		loads []int
		plan  placement.Plan
		want  string
	}{
		{[]int{huge, 1}, nil, "placement: " + want},
		{[]int{huge, huge, huge}, nil, "placement: " + want},
		{[]int{placement.MaxPredicted / 2, placement.MaxPredicted/2 + 1}, nil, "placement: " + want},
		{[]int{3, 4}, placement.Plan{placement.Arrive{Count: huge}}, "placement: step 1 (arrive 9223372036854775807): " + want},
		{
			[]int{3, 4}, placement.Plan{placement.Arrive{Count: 9}, placement.Leave{Count: 9}, placement.Arrive{Count: placement.MaxPredicted - 15}},
			"placement: step 3 (arrive 9999985): " + want,
		},
	} {
		p, err := placement.Predict(view(t, gateways(c.loads...)), nil, c.plan...)
		require.EqualError(t, err, c.want)
		require.Zero(t, p)
	}
}

// What is written as JSON is read as the same, and a step is its text.
func TestPredictionJSON(t *testing.T) {
	plan, err := placement.ParsePlan(`stop A; start A; crash B; arrive 3; join "b, too"; leave 1 from A; leave 1; settle 2; crash "b, too"`)
	require.NoError(t, err)
	all := gateways(3, 4, 5)
	all[2].Known = false
	p := predict(t, view(t, all), plan...)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	for _, part := range []string{`"before":{"served":{"A":3,"B":4},"unknown":["C"],`, `{"step":"stop A","served":{`, `"step":"crash \"b, too\""`, `"moved":3,"waiting":0}`, `"warnings":[`} {
		require.Contains(t, string(text), part)
	}
	var again placement.Prediction
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, p, again)

	var o placement.Outcome
	require.NoError(t, json.Unmarshal([]byte(`{"step":"stop A","moved":2}`), &o))
	require.Equal(t, placement.Outcome{Step: placement.Stop{"A"}, Moved: 2}, o)
	require.NoError(t, json.Unmarshal([]byte(`{}`), &o))
	require.Nil(t, o.Step)
	for _, bad := range []string{`{"step":"stop A; stop B"}`, `{"step":"rest"}`, `{"step":1}`, `{"moved":"x"}`} {
		require.Error(t, json.Unmarshal([]byte(bad), &o), bad)
	}
}

// A plan that cannot be carried out names the step and the gateway.
func TestPredictErrors(t *testing.T) {
	type plan = []placement.Step
	for _, c := range []struct {
		plan plan
		want string
	}{
		{plan{placement.Arrive{Count: 1}, placement.Stop{"X"}}, `placement: step 2 (stop X): gateway "X" is unknown`},
		{plan{placement.Crash{"A", "X"}}, `placement: step 1 (crash A X): gateway "X" is unknown`},
		{plan{placement.Stop{"A"}, placement.Stop{"A"}}, `placement: step 2 (stop A): gateway "A" is gone already`},
		{plan{placement.Crash{"A"}, placement.Leave{Count: 1, From: "A"}}, `placement: step 2 (leave 1 from A): gateway "A" is gone already`},
		{plan{placement.Start{"X"}}, `placement: step 1 (start X): gateway "X" is unknown; one that is new joins`},
		{plan{placement.Start{"A"}}, `placement: step 1 (start A): gateway "A" has not stopped`},
		{plan{placement.Join{"A"}}, `placement: step 1 (join A): gateway "A" is there already`},
		{plan{placement.Stop{"A"}, placement.Join{"A"}}, `placement: step 2 (join A): gateway "A" was there before: it can start, but not join`},
		{plan{placement.Join{"X", ""}}, `placement: step 1 (join X ""): ring: gateways[1] is empty`},
		{plan{placement.Join{"X", "X"}}, `placement: step 1 (join X X): gateway "X" is named twice`},
		{plan{placement.Stop{}}, `placement: step 1 (stop): it names no gateway`},
		{plan{placement.Start(nil)}, `placement: step 1 (start): it names no gateway`},
		{plan{placement.Arrive{Count: -1}}, `placement: step 1 (arrive -1): it is negative`},
		{plan{placement.Leave{Count: -1}}, `placement: step 1 (leave -1): it is negative`},
		{plan{placement.Leave{Count: 5}}, `placement: step 1 (leave 5): there are only 4`},
		{plan{placement.Leave{Count: 4, From: "B"}}, `placement: step 1 (leave 4 from B): there are only 3`},
		{plan{placement.Settle{Budget: -1}}, `placement: step 1 (settle -1): its budget is negative`},
		{plan{placement.Settle{}, nil}, `placement: step 2 is nil`},
	} {
		p, err := placement.Predict(view(t, gateways(1, 3)), nil, c.plan...)
		require.EqualError(t, err, c.want)
		require.Zero(t, p)
	}
	for _, c := range []struct {
		who  map[ring.GatewayID][]ring.MemberID
		want string
	}{
		{map[ring.GatewayID][]ring.MemberID{"X": nil}, `placement: members are named of gateway "X", which the view does not have`},
		{map[ring.GatewayID][]ring.MemberID{"A": {"m"}, "B": {"n", "m"}}, `placement: member "m" is named twice`},
	} {
		_, err := placement.Predict(view(t, gateways(1, 3)), c.who)
		require.EqualError(t, err, c.want)
	}
}

func TestPredictWhoIsWhere(t *testing.T) {
	who := map[ring.GatewayID][]ring.MemberID{"A": {"m", "n", "C/0", "arrival/1"}, "B": {}}
	told := maps.Clone(who)
	told["A"] = slices.Clone(who["A"])
	p, err := placement.Predict(view(t, gateways(1, 3, 2)), who, placement.Stop{"B"}, placement.Arrive{Count: 3}, placement.Join{"D"}, placement.Stop{"A"}, placement.Stop{"C"}, placement.Stop{"D"})
	require.NoError(t, err)
	require.Equal(t, map[ring.GatewayID]int{"A": 4, "B": 0, "C": 2}, p.Before.Served, "what is told goes before what is counted")
	require.Equal(t, 9, p.After().Waiting)
	require.Equal(t, []ring.MemberID{"C/0", "arrival/1", "m", "n"}, slices.DeleteFunc(slices.Sorted(maps.Keys(p.Movers)), func(m ring.MemberID) bool {
		return !slices.Contains(who["A"], m)
	}), "each has moved by name")
	require.Subset(t, slices.Collect(maps.Keys(p.Movers)), []ring.MemberID{"C/1", "C/2", "arrival/0", "arrival/2", "arrival/3"}, "no made-up name is one that is taken")
	require.Equal(t, told, who, "the map remains the caller's")
}

// Random plans: nobody is lost, nobody counts twice, and the same comes out again; the
// view has not changed.
func TestPredictProperties(t *testing.T) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 23))
		loads := make([]int, 1+rnd.IntN(4))
		for i := range loads {
			loads[i] = rnd.IntN(12)
		}
		all := gateways(loads...)
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		total := 0
		var up, down []ring.GatewayID
		for _, g := range all {
			up = append(up, g.ID)
			total += g.Load()
		}
		var plan []placement.Step
		var want []int // in the fleet, after each step
		take := func(from *[]ring.GatewayID) []ring.GatewayID {
			rnd.Shuffle(len(*from), func(i, j int) { (*from)[i], (*from)[j] = (*from)[j], (*from)[i] })
			n := 1 + rnd.IntN(min(2, len(*from)))
			some := slices.Clone((*from)[:n])
			*from = slices.Clone((*from)[n:])
			return some
		}
		for range 10 {
			var s placement.Step
			switch k := rnd.IntN(7); {
			case k == 0 && len(up) > 0:
				some := take(&up)
				down = append(down, some...)
				s = placement.Stop(some)
			case k == 1 && len(up) > 0:
				some := take(&up)
				down = append(down, some...)
				s = placement.Crash(some)
			case k == 2 && len(down) > 0:
				some := take(&down)
				up = append(up, some...)
				s = placement.Start(some)
			case k == 3 && len(plan) < 3:
				up = append(up, ring.GatewayID(rune('V'+len(plan))))
				s = placement.Join{up[len(up)-1]}
			case k == 4:
				n := rnd.IntN(total + 1)
				total -= n
				s = placement.Leave{Count: n}
			case k == 5:
				s = placement.Settle{Budget: rnd.IntN(5)}
			default:
				n := rnd.IntN(9)
				total += n
				s = placement.Arrive{Count: n}
			}
			plan, want = append(plan, s), append(want, total)
		}
		v := view(t, all)
		before := v.Clone()
		p := predict(t, v, plan...)
		require.Equal(t, before, v, "seed %d: the view has changed", seed)
		slices.Reverse(all)
		require.Equal(t, p, predict(t, view(t, all), plan...), "seed %d", seed)

		moved, hops, people := 0, 0, 0
		for i, o := range p.Steps {
			sum := o.Waiting
			for id, n := range o.Served {
				require.GreaterOrEqual(t, n, 0, "seed %d, %s", seed, id)
				sum += n
			}
			require.Equal(t, want[i], sum, "seed %d, step %d\n%s", seed, i+1, p)
			require.Equal(t, sum-o.Waiting, o.Balance.Total, "seed %d: everybody here is placeable", seed)
			require.True(t, o.Waiting == 0 || len(o.Served) == 0, "seed %d: nobody waits while a gateway is there", seed)
			if s, ok := o.Step.(placement.Settle); ok {
				require.True(t, o.Balance.Even() || s.Budget > 0 && o.Moved >= s.Budget, "seed %d, step %d\n%s", seed, i+1, p)
			}
			moved += o.Moved
		}
		for n, k := range p.Moves {
			hops, people = hops+n*k, people+k
		}
		require.Equal(t, moved, hops, "seed %d", seed)
		require.GreaterOrEqual(t, people, total, "seed %d", seed)
		named := 0
		for _, n := range p.Movers {
			named += n
		}
		require.Equal(t, moved, named, "seed %d", seed)
		rows := strings.Split(p.String(), "\n")
		for i, s := range plan {
			require.True(t, strings.HasPrefix(rows[i+2], s.String()+" "), "seed %d: a row for each step\n%s", seed, p)
		}
	}
}

// Who leaves comes from everywhere.
func TestPredictLeaveSpreads(t *testing.T) {
	p := predict(t, view(t, gateways(300, 300, 300)), placement.Leave{Count: 300})
	for id, n := range p.After().Served {
		require.InDelta(t, 200, n, 40, "%s", id)
	}
}

// Whom a stop has displaced is settled first.
func TestPredictSettlesTheDisplacedFirst(t *testing.T) {
	p := predict(t, view(t, gateways(4, 4)), placement.Stop{"A"}, placement.Start{"A"}, placement.Settle{})
	require.Equal(t, map[ring.MemberID]int{"A/0": 1, "A/1": 1, "A/2": 1, "A/3": 1}, predict(t, view(t, gateways(4, 4)), placement.Stop{"A"}).Movers)
	require.Equal(t, map[ring.MemberID]int{"A/0": 2, "A/1": 2, "A/2": 2, "A/3": 2}, p.Movers)
}

func TestPredictOfNothing(t *testing.T) {
	var zero placement.Prediction
	require.Equal(t, zero.Before, zero.After())
	require.Contains(t, zero.String(), "now")
	none, err := placement.Predict(nil, nil)
	require.NoError(t, err)
	empty, err := placement.Predict(placement.NewView(placement.Picture{}), nil)
	require.NoError(t, err)
	require.Equal(t, empty, none)
	require.Equal(t, empty.Before, empty.After())
	p := predict(t, placement.NewView(placement.Picture{}), placement.Join{"A", "B"}, placement.Arrive{Count: 4})
	require.Equal(t, "A:0 B:0, A:2 B:2", served(p))
}

// BenchmarkPredict rolls a whole fleet: each gateway's replacement joins, and then it stops; or,
// without surge, it stops and starts again.
func BenchmarkPredict(b *testing.B) {
	const n, each = 16, 625
	all := full(n, 0)
	for i := range all {
		all[i].Attached, all[i].Incarnation = each, placement.Incarnation(i+1)
	}
	v := placement.NewView(placement.Picture{Ring: circle(b, all), Gateways: all, Live: n * each})
	for _, surge := range []bool{true, false} {
		var plan []placement.Step
		for i, g := range all {
			if surge {
				plan = append(plan, placement.Join{ring.GatewayID(fmt.Sprint("gw-", n+i))}, placement.Stop{g.ID})
			} else {
				plan = append(plan, placement.Stop{g.ID}, placement.Start{g.ID})
			}
		}
		b.Run(fmt.Sprintf("gateways=%d/supervisors=%d/surge=%t", n, n*each, surge), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := predict(b, v, plan...)
				require.Equal(b, n*each, p.After().Balance.Total)
			}
		})
	}
}
