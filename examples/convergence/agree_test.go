// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/gatewayd"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// twoPages are the rosters of a and b, which agree.
func twoPages() []gatewayd.Roster {
	records := func() []gatewayd.Record {
		return []gatewayd.Record{
			{Gateway: "a", Digest: 1, Attached: 3, Sequence: 9, ChangedAt: at(100)},
			{Gateway: "b", Digest: 2, Attached: 1, Held: 1, Sequence: 5, ChangedAt: at(200)},
		}
	}
	return []gatewayd.Roster{
		{Gateway: "a", Digest: 3, Since: at(240), Records: records()},
		{Gateway: "b", Digest: 3, Since: at(200), Records: records()},
	}
}

func TestCompare(t *testing.T) {
	require.NoError(t, compare(twoPages()))
	for _, row := range []struct {
		spoil func(b *gatewayd.Roster)
		want  string
	}{
		{func(b *gatewayd.Roster) { b.Records[0].Digest, b.Records[0].Attached, b.Records[0].Sequence = 8, 2, 7 },
			"of a, a has 3 attached and 0 held up to 9, and b has 2 and 0 up to 7"},
		{func(b *gatewayd.Roster) { b.Records[0].Gateway = "c" }, "b knows c and a does not"},
		{func(b *gatewayd.Roster) { b.Records = b.Records[:1] }, "a and b know different gateways"},
	} {
		pages := twoPages()
		pages[1].Digest = 4
		row.spoil(&pages[1])
		require.EqualError(t, compare(pages), row.want)
	}
}

func TestVerify(t *testing.T) {
	page := func(a, b []gatewayd.Member) gatewayd.Roster {
		return gatewayd.Roster{Records: []gatewayd.Record{{Gateway: "a", Members: a}, {Gateway: "b", Members: b}}}
	}
	m, n, held := gatewayd.Member{Member: "m"}, gatewayd.Member{Member: "n"}, gatewayd.Member{Member: "m", Held: true}
	want := truth{"m": "a", "n": "b"}
	for _, row := range []struct {
		a, b []gatewayd.Member
		want string // empty: it is right
	}{
		{[]gatewayd.Member{m}, []gatewayd.Member{n}, ""},
		{[]gatewayd.Member{m}, nil, "b does not list n"},
		{[]gatewayd.Member{m, n}, []gatewayd.Member{n}, `a lists n, which is at "b"`},
		{[]gatewayd.Member{m, {Member: "x"}}, []gatewayd.Member{n}, `a lists x, which is at ""`},
		{[]gatewayd.Member{m}, []gatewayd.Member{n, held}, "b still expects m back, which is at a"},
		{[]gatewayd.Member{held}, []gatewayd.Member{n}, "a does not list m"},
		{nil, []gatewayd.Member{{Member: "1"}, {Member: "2"}, {Member: "3"}, {Member: "4"}}, "\nand 3 more"},
	} {
		err := verify(page(row.a, row.b), want)
		if row.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, row.want)
		}
	}
}

func TestTimes(t *testing.T) {
	agree, lag := times(twoPages(), at(210))
	require.Equal(t, []time.Duration{30 * time.Millisecond, 0}, agree)
	require.Equal(t, []time.Duration{40 * time.Millisecond, 0}, lag)
}

func TestSpread(t *testing.T) {
	require.Equal(t, 2, spread(twoPages()[0]))
	require.Zero(t, spread(gatewayd.Roster{}))
}

func TestQuantiles(t *testing.T) {
	var all []time.Duration
	for i := 200; i > 0; i-- {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	require.Equal(t, spans{P50: 100, P99: 198, Max: 200}, quantiles(all))
	require.Equal(t, spans{P50: 1, P99: 1, Max: 1}, quantiles([]time.Duration{time.Millisecond}))
}

func TestSummarize(t *testing.T) {
	round := func(ok bool, a, b float64) result {
		return result{OK: ok, Each: []share{{Gateway: "a", AgreeMS: a, LagMS: 1}, {Gateway: "b", AgreeMS: b, LagMS: 2}}}
	}
	sum := summarize([]result{round(true, 10, 20), round(true, 30, 40)})
	require.Equal(t, summary{
		Rounds: 2, OK: true, Agree: spans{20, 40, 40}, Lag: spans{1, 2, 2},
		Gateways: map[string]spans{"a": {10, 30, 30}, "b": {20, 40, 40}},
	}, sum)
	require.Contains(t, sum.lines(), "max 40 ms (b)")
	require.False(t, summarize([]result{round(true, 1, 1), round(false, 1, 1)}).OK)
}
