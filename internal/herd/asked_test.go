// SPDX-License-Identifier: Apache-2.0

package herd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

type noPeers struct{}

func (noPeers) Ask(context.Context, placement.Gateway, placement.Question) (placement.Answer, error) {
	return placement.Answer{}, errors.New("the test carries questions")
}

// targetOf returns a gateway that is asked, and knows of some others that serve nobody.
func targetOf(t *testing.T, now time.Time, others int) *redirect.Admission {
	t.Helper()
	a, err := redirect.NewAdmission(now, redirect.Config{Gateway: "target", Incarnation: 1, Endpoint: "target:1", Peers: noPeers{}})
	require.NoError(t, err)
	a.Serve(now)
	for i := range others {
		a.Step(now, roster.Received{From: ring.GatewayID(fmt.Sprint("other-", i)), Message: roster.Heartbeat{Origin: roster.Origin{
			Gateway: ring.GatewayID(fmt.Sprint("other-", i)), Endpoint: fmt.Sprintf("other-%d:1", i), State: placement.Ready, Counts: placement.Counts{Incarnation: 1, Sequence: 1},
		}}})
	}
	require.Equal(t, others+1, a.Stats(now).Placeable)
	return a
}

// All questions are in flight at once; answers are late or lost, so that a question is put twice or its
// supervisor comes after the reservation has expired, or never. Whatever the order: when the
// target says yes to a question that does not insist, its load is at most the limit that was asked for,
// or the cap that its own count of the fleet makes, if that is higher: it would have kept the supervisor itself.
func TestNoYesAboveTheLimit(t *testing.T) {
	const reserve = redirect.DefaultReserve
	yes, no, insisted, expired := 0, 0, 0, uint64(0)
	for seed := range uint64(seeds(t, 150)) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		now := time.Unix(1_000_000_000, 0)
		target := targetOf(t, now, 3+rnd.IntN(4))
		limit := 1 + rnd.IntN(8)
		members := make([]ring.MemberID, 5+rnd.IntN(20))
		for i := range members {
			members[i] = ring.MemberID(fmt.Sprint("m", i))
		}
		generation := placement.Generation(1)
		var streams []redirect.Key
		for range 150 {
			now = now.Add(time.Duration(rnd.Int64N(int64(reserve / 12))))
			if rnd.IntN(15) == 0 {
				now = now.Add(reserve) // answers and arrivals alike are later than the reservation
			}
			m := members[rnd.IntN(len(members))]
			switch rnd.IntN(6) {
			case 0, 1, 2: // for the first time, or again after an answer that was late or lost
				q := placement.Question{From: "other-0", Member: m, Generation: generation, Limit: 1 + rnd.IntN(limit), Insist: rnd.IntN(20) == 0}
				load := func() int {
					s := target.Stats(now)
					return s.Served + s.Held + s.Reserved
				}
				before := load()
				answer := target.Asked(now, q)
				after := load()
				require.LessOrEqual(t, after, before+1, "seed %d: one place at most", seed)
				switch {
				case !answer.Yes:
					no++
					require.Equal(t, before, after, "seed %d: a no keeps no place", seed)
				case q.Insist:
					insisted++
				case after > before: // a new place; otherwise its own is its place
					yes++
					require.LessOrEqual(t, after, max(q.Limit, target.Stats(now).Cap), "seed %d: %d before a yes below %d", seed, before, q.Limit)
				}
			case 3, 4: // it arrives: on time, late, or without ever having been asked for
				generation++
				p := target.Hello(now, redirect.Hello{Member: m, Generation: generation, Stay: true, Hops: 1, CanRedirect: true})
				require.True(t, p.Done)
				if p.Verdict.Outcome == redirect.Accept {
					streams = append(streams, p.Key)
				}
			case 5:
				if len(streams) > 0 {
					i := rnd.IntN(len(streams))
					target.Leave(now, streams[i], rnd.IntN(4) > 0)
					streams = append(streams[:i], streams[i+1:]...)
				}
			}
			target.Take()
		}
		expired += target.Stats(now.Add(2 * reserve)).RedirectsExpired
		require.Zero(t, target.Stats(now.Add(2*reserve)).Reserved, "seed %d: nobody came, and every place is free again", seed)
	}
	for what, n := range map[string]int{"yes": yes, "no": no, "insisted": insisted, "expired": int(expired)} {
		require.Positive(t, n, "%s never happened: the test tests little", what)
	}
}
