// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// whys tells of every gateway on the walk, by ID.
func whys(e placement.Explanation) map[ring.GatewayID]placement.Why {
	all := map[ring.GatewayID]placement.Why{}
	for _, c := range e.Walk {
		all[c.Gateway.ID] = c.Why
	}
	return all
}

func TestWhyEachWasPassedOver(t *testing.T) {
	all := gateways(4, 4, 0, 0, 0, 0, 0, 0, 2, 2)
	all[2].State = placement.Draining
	all[3].State = placement.Starting
	all[4].Suspect = true
	all[5].Known = false
	all[6].Endpoint = ""
	all[7].Attached = 3 // to be avoided
	circle := circle(t, append(slices.Clone(all), placement.Gateway{ID: "Z"}))
	// Live is what the counts below say of A, B, I and J, so that a share of 3 and a cap of 4 divide by those four and G.
	v := placement.NewView(placement.Picture{Ring: circle, Gateways: all, Live: 15})
	first := func(id ring.GatewayID) placement.Explanation {
		return v.Explain(placement.Request{Member: "m", Prefer: id, Avoid: []ring.GatewayID{"H"}})
	}

	e := first("A")
	require.Equal(t, []int{3, 4, 3}, []int{e.Decision.Share, e.Decision.Cap, e.Decision.Limit}, "share, cap, limit")
	chosen := e.Decision.Gateway
	require.Contains(t, []ring.GatewayID{"I", "J"}, chosen)
	got := whys(e)
	require.Equal(t, placement.WhyFull, got["A"])
	for id, want := range map[ring.GatewayID]placement.Why{
		chosen: placement.WhyChosen, "C": placement.WhyDraining, "D": placement.WhyStarting, "E": placement.WhySuspect,
		"F": placement.WhyUnheard, "Z": placement.WhyUnheard, "G": placement.WhyNoEndpoint, "H": placement.WhyAvoided,
	} {
		require.Equal(t, want, got[id], id)
	}
	require.Equal(t, placement.WhyChosen, e.Walk[e.Rank].Why)
	require.Equal(t, placement.WhyLater, e.Walk[slices.IndexFunc(e.Walk, func(c placement.Candidate) bool {
		return c.Gateway.ID != chosen && (c.Gateway.ID == "I" || c.Gateway.ID == "J")
	})].Why)

	all[0].Attached = 3
	v = placement.NewView(placement.Picture{Ring: circle, Gateways: all, Live: 15})
	e = first("A")
	require.Equal(t, placement.WhyAboveShare, whys(e)["A"])

	text := e.String()
	for _, line := range []string{
		`A +ready +3 .* others are below the share of 3`, `C +draining +0 .* takes nobody`, `D +starting +0 .* takes nobody`,
		`E +suspect +0 .* takes nobody`, `F +unknown +\? +its load is not known`, `Z +unknown +\? +its load is not known`,
		`G +ready +0 .* no endpoint`, `H +ready +3 .* the supervisor avoids it`, string(chosen) + ` +ready +2 .* chosen: the first below 3`,
	} {
		require.Regexp(t, `\n +\d+ +`+line+`\n`, text)
	}
	require.Contains(t, text, "\nprefers A, avoids H\n")
}

// When nobody has room the first is chosen, and the others are full.
func TestWhyWhenNobodyHasRoom(t *testing.T) {
	all := gateways(4, 4, 4)
	e := view(t, all).Explain(placement.Request{Member: ownedBy(t, "C", all), Home: "nowhere", Prefer: "A"})
	require.Equal(t, placement.Full, e.Decision.Reason)
	require.Equal(t, map[ring.GatewayID]placement.Why{"A": placement.WhyFull, "B": placement.WhyFull, "C": placement.WhyChosen}, whys(e))
	require.Zero(t, e.Rank)
	require.Contains(t, e.String(), "chosen: nobody has room, and it comes first")
	require.Contains(t, e.String(), "at the cap of 4")
}

func TestExplainNowhere(t *testing.T) {
	e := placement.NewView(placement.Picture{}).Explain(placement.Request{Member: "m"})
	require.Equal(t, -1, e.Rank)
	require.Equal(t, fmt.Sprintf("m -> wherever it came (nowhere): 1 live on 0 gateways, share 0, cap 0\nring %s, view 0, 0s old\n", e.Fingerprint), e.String())
	require.Equal(t, e, again(t, e))
}

// again is an explanation after its way through JSON.
func again(t *testing.T, e placement.Explanation) placement.Explanation {
	t.Helper()
	text, err := json.Marshal(e)
	require.NoError(t, err)
	var back placement.Explanation
	require.NoError(t, json.Unmarshal(text, &back))
	return back
}

// Whatever the fleet and the request: what is said of each gateway is true, its
// figures add up, and JSON keeps everything.
func TestExplanationsAreTrue(t *testing.T) {
	seen := map[placement.Why]int{}
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		loads := make([]int, 1+rnd.IntN(7))
		for i := range loads {
			loads[i] = rnd.IntN(6)
		}
		all := gateways(loads...)
		pick := func() ring.GatewayID { return all[rnd.IntN(len(all))].ID }
		p := placement.Picture{Self: "A", Ring: circle(t, all), Asking: rnd.IntN(2) == 0, Rivals: 1 + rnd.IntN(3), Version: rnd.Uint64()}
		for i := range all {
			g := &all[i]
			g.Incarnation = placement.Incarnation(rnd.Uint64())
			g.Held, g.Reserved = rnd.IntN(2), rnd.IntN(2)
			if !p.Asking {
				g.Promised = rnd.IntN(2)
			}
			p.Live += g.Load() + g.Promised
			g.State = placement.State(max(0, rnd.IntN(7)-4))
			if g.State == placement.Starting && rnd.IntN(4) > 0 {
				g.State = placement.Ready
			}
			g.Suspect, g.Known = rnd.IntN(8) == 0, rnd.IntN(8) != 0
			if rnd.IntN(8) == 0 {
				g.Endpoint = ""
			}
		}
		p.Gateways = all
		r := placement.Request{Member: ring.MemberID(fmt.Sprint(rnd.Uint64()))}
		if rnd.IntN(2) == 0 {
			g := all[rnd.IntN(len(all))]
			switch {
			case g.Promised > 0 && rnd.IntN(2) == 0:
				r.Home, r.Promised = g.ID, true
			case g.Held > 0 && rnd.IntN(2) == 0:
				r.Home, r.Held = g.ID, true
			case g.Attached > 0:
				r.Home = g.ID
			}
		}
		if rnd.IntN(3) == 0 {
			r.Avoid = append(r.Avoid, pick())
		}
		if rnd.IntN(3) == 0 {
			r.Prefer = pick()
		}
		v := placement.NewView(p)
		e := v.Explain(r)
		require.Equal(t, v.Place(r), e.Decision, "seed %d", seed)
		require.Equal(t, r, e.Request)
		require.Len(t, e.Walk, len(all))
		require.Equal(t, e, again(t, e), "seed %d", seed)

		d, chosen := e.Decision, -1
		for i, c := range e.Walk {
			seen[c.Why]++
			g := c.Gateway
			require.Equal(t, c.Load, g.Load()+e.Rivals*g.Promised-c.Omitted, "seed %d: %s", seed, e)
			if g.Known && e.Request.Home != g.ID {
				require.Zero(t, c.Omitted, "seed %d: %s", seed, e)
			}
			target := g.State == placement.Ready && !g.Suspect && g.Known && !slices.Contains(r.Avoid, g.ID) && (g.Endpoint != "" || g.ID == p.Self)
			holds := map[placement.Why]bool{
				placement.WhyChosen:     target && g.ID == d.Gateway && c.Load == d.Load && (c.Load < d.Limit || d.Reason == placement.Full),
				placement.WhySuspect:    g.Suspect,
				placement.WhyDraining:   g.State == placement.Draining,
				placement.WhyStarting:   g.State == placement.Starting,
				placement.WhyUnheard:    !g.Known,
				placement.WhyAvoided:    slices.Contains(r.Avoid, g.ID),
				placement.WhyNoEndpoint: g.Endpoint == "" && g.ID != p.Self,
				placement.WhyLater:      target && chosen >= 0,
				placement.WhyFull:       target && c.Load >= d.Cap,
				placement.WhyAboveShare: target && c.Load >= d.Share && c.Load < d.Cap && d.Limit == d.Share && chosen < 0,
			}
			require.True(t, holds[c.Why], "seed %d: %s: %s", seed, c.Why, e)
			if c.Why == placement.WhyChosen {
				chosen = i
			}
		}
		require.Equal(t, chosen, e.Rank, "seed %d: %s", seed, e)
		require.Equal(t, d.Gateway == "", chosen < 0, "seed %d: %s", seed, e)
	}
	for w := placement.WhyChosen; w <= placement.WhyAboveShare; w++ {
		require.Positive(t, seen[w], "%s was never seen", w)
	}
}

// The figures of a line add up, and say what was left out of them.
func TestLoadsAddUp(t *testing.T) {
	all := gateways(4, 2)
	all[0].Held = 2
	for _, c := range []struct {
		name     string
		request  placement.Request
		asking   bool
		promised int
		rivals   int
		want     string
	}{
		{name: "a newcomer", want: "6 (4 attached, 2 held, 0 reserved)"},
		{name: "at home", request: placement.Request{Home: "A"}, want: "5 (4 attached, 2 held, 0 reserved; itself left out)"},
		{name: "at home, with asking", request: placement.Request{Home: "A"}, asking: true, want: "3 (4 attached, 2 held, 0 reserved; itself and those on hold left out)"},
		{name: "on hold", request: placement.Request{Home: "A", Held: true}, want: "5 (4 attached, 2 held, 0 reserved; itself left out)"},
		{name: "on hold, with asking", request: placement.Request{Home: "A", Held: true}, asking: true, want: "4 (4 attached, 2 held, 0 reserved; itself and the others on hold left out)"},
		{name: "promises", promised: 2, want: "8 (4 attached, 2 held, 0 reserved, 2 promised)"},
		{name: "promises of rivals", promised: 2, rivals: 3, want: "12 (4 attached, 2 held, 0 reserved, 2 promised x3)"},
		{name: "its own promise", request: placement.Request{Home: "A", Promised: true}, promised: 2, rivals: 3, want: "9 (4 attached, 2 held, 0 reserved, 2 promised x3; its own promise left out)"},
		{name: "at home elsewhere", request: placement.Request{Home: "B"}, want: "6 (4 attached, 2 held, 0 reserved)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			some := slices.Clone(all)
			some[0].Promised = c.promised
			c.request.Member = "m"
			e := view(t, some, func(p *placement.Picture) { p.Asking, p.Rivals = c.asking, c.rivals }).Explain(c.request)
			require.Contains(t, e.String(), "  A  ready  "+c.want+"  ")
		})
	}
}

func TestExplainNamesHomes(t *testing.T) {
	v := view(t, gateways(4, 2))
	for _, c := range []struct {
		request placement.Request
		want    string
	}{
		{placement.Request{Home: "A"}, "at home at A"},
		{placement.Request{Home: "A", Held: true}, "on hold at A"},
		{placement.Request{Home: "A", Promised: true, Prefer: "A"}, "promised to A"},
		{placement.Request{Home: "A", Prefer: "B", Avoid: []ring.GatewayID{"A", "gw 3"}}, `at home at A, prefers B, avoids A "gw 3"`},
	} {
		require.Equal(t, c.want, strings.Split(v.Explain(c.request).String(), "\n")[1])
	}
}

// No ID breaks a line, or a column.
func TestOddIDsAreQuoted(t *testing.T) {
	all := gateways(3)
	all[0].ID = "gw\t1\n2"
	v := view(t, all, func(p *placement.Picture) { p.Self = all[0].ID })
	for m, want := range map[ring.MemberID]string{
		"plain-1": "plain-1", "größe": "größe", "a\nb": `"a\nb"`, "a b": `"a b"`, "": `""`, `"`: `"\""`, "\xff": `"\xff"`, "a\u202eb": `"a\u202eb"`,
	} {
		text := v.Explain(placement.Request{Member: m}).String()
		require.True(t, strings.HasPrefix(text, want+` -> "gw\t1\n2" (owner): 4 live on 1 gateway, share 4, cap 4`+"\n"), text)
		require.Equal(t, 3, strings.Count(text, "\n"), text)
	}
	require.Contains(t, v.Balance().String(), `, emptiest "gw\t1\n2"`)
}

// The names are for programs, and stay.
func TestExplanationJSON(t *testing.T) {
	all := gateways(3)
	all[0].Incarnation, all[0].Sequence = 1<<63+1, 1<<60+1
	v := placement.NewView(placement.Picture{Self: "A", Ring: circle(t, all), Gateways: all, Live: 3, Version: 1<<53 + 1, Age: 1500})
	e := v.Explain(placement.Request{Member: "m", Home: "A", Held: true, Prefer: "A", Avoid: []ring.GatewayID{"B"}})
	text, err := json.Marshal(e)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"request": {"member": "m", "home": "A", "held": true, "prefer": "A", "avoid": ["B"]},
		"decision": {
			"gateway": "A", "endpoint": "A:1", "incarnation": "9223372036854775809", "reason": "preferred",
			"cap": 3, "share": 3, "limit": 3, "load": 2, "version": "9007199254740993", "age_ns": 1500
		},
		"stale": false, "rank": 0, "live": 3, "placeable": 1, "rivals": 1, "fingerprint": "`+e.Fingerprint.String()+`",
		"walk": [{
			"gateway": {
				"id": "A", "endpoint": "A:1", "state": "ready", "suspect": false, "known": true,
				"incarnation": "9223372036854775809", "sequence": "1152921504606846977", "attached": 3, "held": 0, "reserved": 0, "promised": 0
			},
			"load": 2, "omitted": 1, "why": "chosen"
		}]
	}`, string(text))
	require.Len(t, e.Fingerprint.String(), 16)
	require.Equal(t, circle(t, all).Fingerprint(), uint64(e.Fingerprint))
	require.Equal(t, e, again(t, e))

	var f placement.Fingerprint
	require.ErrorContains(t, f.UnmarshalText([]byte("xyz")), `"xyz" is no fingerprint`)
}

// A text of a later version is read as one that is not known, and never fails.
func TestTextsOfALaterVersion(t *testing.T) {
	var back struct {
		State  placement.State
		Reason placement.Reason
		Why    placement.Why
	}
	back.State, back.Why = placement.Ready, placement.WhyFull
	require.NoError(t, json.Unmarshal([]byte(`{"State": "hibernating", "Reason": "lucky", "Why": "ugly"}`), &back))
	require.Equal(t, placement.Starting, back.State)
	require.Equal(t, placement.Unknown, back.Reason)
	require.Equal(t, placement.WhyUnknown, back.Why)
	text, err := json.Marshal(back)
	require.NoError(t, err)
	require.JSONEq(t, `{"State": "starting", "Reason": "unknown", "Why": "unknown"}`, string(text))
	require.Equal(t, "unknown", placement.Why(99).String())
	require.NotContains(t, placement.Reasons(), placement.Unknown)
	for _, r := range append(placement.Reasons(), placement.Unknown) {
		require.Equal(t, r, placement.ParseReason(r.String()))
	}
	require.Contains(t, placement.Explanation{Walk: []placement.Candidate{{}}}.String(), "unknown")
}
