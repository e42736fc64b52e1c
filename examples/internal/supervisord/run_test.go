// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

func members(n int) []ring.MemberID {
	all := make([]ring.MemberID, n)
	for i := range all {
		all[i] = ring.MemberID(fmt.Sprint("edge-", i+1))
	}
	return all
}

// words renders events without what differs from run to run.
func words(all []report.Event) []string {
	var lines []string
	for _, e := range all {
		line := string(e.Kind)
		for _, part := range []string{e.Session, e.Outcome, e.Reason, e.Gateway} {
			if part != "" {
				line += " " + part
			}
		}
		if e.AtHome {
			line += " at home"
		}
		if e.GapMS > 0 {
			line += " after a gap"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestServedAndStopped(t *testing.T) {
	everyTransport(t, func(t *testing.T, kind wire.Kind) {
		gw := alone(t, gateOptions{transport: kind})
		seen, stop := start(t, Config{Transport: kind, Service: gw.addr, Members: members(3), Sessions: 2})
		eventually(t, func() bool { return seen.settled(3, 6) })
		stats := gw.Stats()
		require.Equal(t, 3, stats.Served)
		require.Equal(t, 6, stats.Sessions)
		require.Equal(t, 2, stats.MostSessions)

		stop()
		eventually(t, func() bool { s := gw.Stats(); return s.Served == 0 && s.Sessions == 0 })
		require.Zero(t, gw.Stats().Held, "everybody said goodbye")
		for _, m := range members(3) {
			require.Equal(t, []string{
				"verdict accept placed a",
				"attached a",
				"lost",
			}, words(seen.of(string(m), report.Verdict, report.Attached, report.Lost)))
			own := words(seen.of(string(m), report.Lost, report.Session))
			require.ElementsMatch(t, []string{
				"session session-1 a at home", "session session-2 a at home",
				"session session-1", "session session-2",
			}, own[:4])
			require.Equal(t, []string{"lost"}, own[4:], "a supervisor leaves after its sessions")
		}
	})
}

func TestGap(t *testing.T) {
	everyTransport(t, func(t *testing.T, kind wire.Kind) {
		gw := alone(t, gateOptions{transport: kind})
		seen, _ := start(t, Config{Transport: kind, Service: gw.addr, Members: members(2), Sessions: 1})
		eventually(t, func() bool { return seen.settled(2, 2) })

		gw.listener.cut()
		eventually(t, func() bool { return seen.cut(2, 2) && seen.settled(2, 2) })
		for _, m := range members(2) {
			all := seen.of(string(m), report.Verdict, report.Attached, report.Lost)
			require.Equal(t, []string{
				"verdict accept placed a",
				"attached a",
				"lost",
				"verdict accept stay a",
				"attached a after a gap",
			}, words(all))
			require.InDelta(t, all[4].At.Sub(all[2].At).Seconds()*1000, all[4].GapMS, 0.01)
			require.Equal(t, []string{
				"session session-1 a at home",
				"session session-1",
				"session session-1 a at home",
			}, words(seen.of(string(m), report.Session)))
		}
	})
}

func TestMoveWithoutGap(t *testing.T) {
	everyTransport(t, func(t *testing.T, kind wire.Kind) {
		g := newGates()
		a, b := g.start(t, "a", gateOptions{transport: kind}), g.start(t, "b", gateOptions{transport: kind})
		g.meet(t)
		seen, _ := start(t, Config{Transport: kind, Service: a.addr, Members: members(4), Sessions: 1})
		eventually(t, func() bool { return seen.settled(4, 4) })
		require.Equal(t, 2, a.Stats().Served)
		require.Equal(t, 2, b.Stats().Served)

		leaving, err := a.StartDrain(func(redirect.Departure) {})
		require.NoError(t, err)
		for _, s := range leaving {
			_, err := a.MoveAway(t.Context(), s.Member)
			require.NoError(t, err)
		}
		eventually(t, func() bool { return len(seen.of("", report.Attached)) == 4+2 && seen.settled(4, 4) })
		require.Equal(t, 4, b.Stats().Served)

		require.Empty(t, seen.of("", report.Lost))
		for _, m := range members(4) {
			supervisor := words(seen.of(string(m), report.Verdict, report.Attached))
			session := words(seen.of(string(m), report.Session))
			if len(supervisor) == 3 { // it was b's from the start
				require.Regexp(t, "^verdict redirect .* b$", supervisor[0])
				require.Equal(t, []string{"verdict accept stay b", "attached b"}, supervisor[1:])
				require.Equal(t, []string{"session session-1 b at home"}, session)
				continue
			}
			require.Equal(t, []string{
				"verdict accept placed a", "attached a",
				"verdict accept stay b", "attached b",
			}, supervisor)
			require.Equal(t, []string{
				"session session-1 a at home",
				"session session-1 a",
				"session session-1 b at home",
			}, session)
			order := words(seen.of(string(m), report.Attached, report.Session))
			require.Equal(t, "attached b", order[2], "its session is misplaced from then on")
		}
	})
}

func TestManyStartPromptly(t *testing.T) {
	const many = 500
	gw := alone(t, gateOptions{})
	seen, stop := start(t, Config{Service: gw.addr, Members: members(many)})
	eventually(t, func() bool { return seen.settled(many, 0) })
	require.Len(t, seen.of("", report.Attached), many, "none had to try twice")
	stop()
	eventually(t, func() bool { return gw.Stats().Served == 0 })
	require.Zero(t, gw.Stats().Held)
}

func TestEveryPayloadIsAnswered(t *testing.T) {
	everyTransport(t, func(t *testing.T, kind wire.Kind) {
		answers := make(chan string, 2)
		gw := alone(t, gateOptions{transport: kind, serve: func(ctx context.Context, s talker) error {
			if err := s.Send([]byte("to " + string(s.Hello().Member) + " " + string(s.Hello().Session))); err != nil {
				return err
			}
			answer, err := s.Recv()
			if err != nil {
				return err
			}
			answers <- string(answer)
			<-ctx.Done()
			return nil
		}})
		start(t, Config{Transport: kind, Service: gw.addr, Members: members(1), Sessions: 1})
		eventually(t, func() bool { return len(answers) == 2 })
		require.ElementsMatch(t, []string{"to edge-1 ", "to edge-1 session-1"}, []string{<-answers, <-answers})
	})
}

func TestEveryRequestIsAnswered(t *testing.T) {
	everyTransport(t, func(t *testing.T, kind wire.Kind) {
		gw := alone(t, gateOptions{transport: kind})
		seen, _ := start(t, Config{Transport: kind, Service: gw.addr, Members: members(2), Sessions: 1})
		eventually(t, func() bool { return seen.settled(2, 2) })
		for _, m := range members(2) {
			for _, s := range []redirect.SessionID{"", "session-1"} {
				answer, err := gw.Deliver(t.Context(), redirect.Request{Member: m, Session: s, Payload: []byte("hi")})
				require.NoError(t, err)
				require.Equal(t, "hi", string(answer))
			}
			executed := seen.of(string(m), report.Executed)
			require.Len(t, executed, 2, "each is told once")
			require.Equal(t, "hi", executed[0].Request)
		}
	})
}

func TestFailedDialsAreLogged(t *testing.T) {
	lines := make(chan string, 100)
	log := slog.New(slog.NewTextHandler(lineWriter(lines), nil))
	start(t, Config{Service: "127.0.0.1:1", Members: members(1), Log: log})
	line := <-lines
	require.Contains(t, line, "level=WARN")
	require.Contains(t, line, "member=edge-1")
	require.Contains(t, line, "127.0.0.1:1")
}

type lineWriter chan<- string

func (l lineWriter) Write(line []byte) (int, error) {
	l <- strings.TrimSpace(string(line))
	return len(line), nil
}

func TestBadConfig(t *testing.T) {
	for _, row := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"nothing", Config{}, "Config.Service (flag -service) is empty"},
		{"nobody", Config{Service: "s:1"}, "Config.Members (flag -member, or -prefix) is empty"},
		{"no name", Config{Service: "s:1", Members: []ring.MemberID{""}}, "Config.Members (flag -member) contains an empty name"},
		{"twins", Config{Service: "s:1", Members: []ring.MemberID{"m", "m"}}, `names "m" twice`},
		{"sessions", Config{Service: "s:1", Members: members(1), Sessions: -1}, "Config.Sessions (flag -sessions) is -1"},
		{"transport", Config{Service: "s:1", Members: members(1), Transport: 7}, "Config.Transport (flag -transport: there is no transport 7"},
		{"ops", Config{Service: "s:1", Members: members(1), Ops: "nowhere"}, "Config.Ops (flag -ops)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.ErrorContains(t, Run(t.Context(), row.cfg), row.want)
		})
	}
}
