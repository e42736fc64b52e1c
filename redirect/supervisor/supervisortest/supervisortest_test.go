// SPDX-License-Identifier: Apache-2.0

package supervisortest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A transport that does nothing wrong passes, and every trial is run.
func TestRun(t *testing.T) {
	Run(t, func(testing.TB) Subject { return none.subject() })
}

// What a transport does not claim is not examined.
func TestNeeds(t *testing.T) {
	s := none.subject()
	bare := Subject{Serve: s.Serve, Transport: s.Transport}
	for _, tr := range trials {
		if tr.needs != nil {
			require.True(t, tr.needs(s), tr.name)
			require.False(t, tr.needs(bare), tr.name)
		}
	}
}

// short is the patience with broken transports.
const short = 400 * time.Millisecond

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	mu   sync.Mutex
	told []string
	tidy []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tidy = append(r.tidy, f)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.mu.Lock()
	r.told = append(r.told, fmt.Sprintf(format, args...))
	r.mu.Unlock()
	runtime.Goexit()
}

// examine returns what one trial says of a transport.
func examine(t *testing.T, tr trial, s Subject, patience time.Duration) []string {
	t.Helper()
	r := &recorder{TB: t}
	var examiner sync.WaitGroup
	examiner.Go(func() { newExam(r, s, patience).sit(tr) })
	examiner.Wait()
	for _, f := range slices.Backward(r.tidy) {
		f()
	}
	return r.told
}

// broken are transports, the trials that find each out, and words of what they say.
var broken = []struct {
	name   string
	fault  fault
	trials []string
	want   string
}{
	{"loses the cap", losesTheCap, []string{"accept"}, "a heard"},
	{"rounds generations", roundsGenerations, []string{"accept", "refusal"}, "a did not hear"},
	{"loses the endpoint", losesTheEndpoint, []string{"redirect", "accept"}, "arrived; a said"},
	{"loses how long to wait", losesRetryAfter, []string{"refusal"}, "arrived; a said"},
	{"yields a stream with every verdict", streamWithEveryVerdict, []string{"redirect", "refusal"}, "exactly after an accept"},
	{"yields no stream", noStream, []string{"accept", "drain"}, "exactly after an accept"},
	{"ignores the context", ignoresTheContext, []string{"silence"}, "took"},
	{"leaks connections", leaksConnections, []string{"silence", "garbage from the gateway"}, "connections that were made are closed"},
	{"ties the stream to its dial", tiesTheStreamToTheDial, []string{"context"}, "nobody has ended it"},
	{"tries an address that refuses again and again", retriesTheRefused, []string{"nobody there"}, "refuses"},
	{"takes garbage for an answer", trustsGarbage, []string{"garbage from the gateway"}, "there is no error"},
	{"dies of garbage", diesOfGarbage, []string{"garbage to the gateway"}, ""},
	{"closes without a goodbye", closesWithoutGoodbye, []string{"goodbye"}, "holds 1"},
	{"leaves the reader waiting", closeLeavesNoticeWaiting, []string{"goodbye"}, "it was closed"},
	{"takes a loss for a goodbye", takesLossForGoodbye, []string{"loss", "the other end vanishes"}, "and holds 0"},
	{"swaps notices", swapsNotices, []string{"notices", "drain"}, "it should be"},
	{"loses notices", losesNotices, []string{"notices", "drain"}, "it should be"},
	{"ends the member, not the stream", endsTheMemberNotTheStream, []string{"late close"}, ""},
	{"has one stream at a time", oneAtATime, []string{"many at once", "accept"}, ""},
	{"does not notice silence, at the supervisor", noKeepalive, []string{"the other end vanishes"}, "the gateway has vanished"},
	{"does not notice silence, at the gateway", gatewayWithoutKeepalive, []string{"the other end vanishes"}, "it should be 1 and 1"},
	{"tells another incarnation", otherIncarnation, []string{"heartbeat"}, "the heartbeat is"},
	{"keeps the first token", keepsTheToken, []string{"credentials"}, "dial of a"},
	{"lets everybody in", asksNobody, []string{"credentials"}, "is accepted"},
	{"answers questions for others", saysYesForOthers, []string{"asks"}, "keeps 0 places"},
	{"promises places for others", saysYesForOthers, []string{"a place is asked for"}, "it should be"},
	{"promises places for the dead", saysYesForOthers, []string{"nobody is sent to a dead gateway"}, "a does not accept"},
	{"loses proofs", losesProofs, []string{"proofs"}, "heard"},
	{"loses renewed proofs", losesRenewals, []string{"proofs come with heartbeats"}, "proofs; it should be 3"},
	{"keeps sessions that have gone", sessionsStay, []string{"sessions"}, "1 sessions are served"},
	{"has one stream at a time, in a drain", oneAtATime, []string{"drain without a gap"}, "without a stream"},
	{"swaps payloads", swapsPayloads, []string{"payloads"}, "payload 1 of 500"},
	{"forgets payloads at the goodbye", forgetsPayloadsAtGoodbye, []string{"payloads before the goodbye"}, "it was sent"},
	{"takes a loss for a goodbye, under an application", takesLossForGoodbye, []string{"goodbye and loss under an application"}, "should be 0 and 1"},
	{"takes a goodbye for a loss, under an application", goodbyeIsALossToApplications, []string{"goodbye and loss under an application"}, "should be 0 and 0"},
	{"ends streams without a word", takesTheEndForALoss, []string{"the application ends the stream"}, "it should be io.EOF"},
	{"takes every end for a goodbye", takesEveryEndForAGoodbye, []string{"the application is told of the end"}, "would be a goodbye"},
	{"waits for a supervisor that does not read", waitsForTheDeaf, []string{"a supervisor that does not read"}, "no end of sending"},
	{"loses reasons", losesReasons, []string{"calls at the wrong gateway"}, "it should be incomplete"},
	{"loses the sessions of calls", losesSessionsOfCalls, []string{"calls to a session"}, "it should be"},
	{"loses errors", losesErrors, []string{"what a member answers", "sizes"}, "it should be an error of its own"},
	{"loses deadlines", losesDeadlines, []string{"deadlines and cancellations"}, "has until"},
	{"never cancels", neverCancels, []string{"deadlines and cancellations"}, "nobody waits"},
	{"calls again", callsAgain, []string{"a stream breaks under a call"}, "it should be lost"},
	{"never calls again", neverCallsAgain, []string{"a stream breaks under a call"}, "may be executed twice"},
	{"doubts what was not sent", doubtsTheUnsent, []string{"a gateway is gone"}, "it should be"},
	{"trusts what it does not know", trustsTheUncertain, []string{"a gateway goes with a call"}, "at a gateway that dies of it"},
	{"serves while it closes", servesWhileClosing, []string{"calls while a stream closes"}, "before a stream closes"},
	{"drops answers when it closes", dropsAnswersAtClose, []string{"calls while a stream closes"}, "before a stream closes"},
	{"drops answers when it moves", dropsAnswersAtClose, []string{"calls survive a drain"}, "when the supervisor has moved"},
	{"drops answers under load", dropsAnswersAtClose, []string{"a rolling replacement under calls"}, "calls have failed"},
	{"drops answers at the end", dropsAnswersAtTheEnd, []string{"answers after the end"}, "before the gateway ends the stream"},
	{"breaks on what is too long", breaksOnSize, []string{"sizes"}, "whose answer is too long"},
	{"executes twice", executesTwice, []string{"a rolling replacement under calls"}, "it should be once"},
	{"stops under calls", stopsUnderCalls, []string{"calls survive a drain"}, "when the gateway stops"},
	{"insists on what it knows", strict, []string{"a later gateway", "a later supervisor"}, "later"},
}

// Every broken transport is found out, by the trials named, with the words given.
func TestBrokenTransports(t *testing.T) {
	for _, row := range broken {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range row.trials {
				i := slices.IndexFunc(trials, func(tr trial) bool { return tr.name == name })
				require.GreaterOrEqual(t, i, 0, name)
				told := ""
				for _, patience := range []time.Duration{short, short, 4 * short, 4 * short, 16 * short, 75 * short} { // a busy machine has faults of its own
					told = strings.Join(examine(t, trials[i], row.fault.subject(), patience), "\n")
					if told != "" && strings.Contains(told, row.want) {
						break
					}
				}
				require.NotEmpty(t, told, "%s does not find it out", name)
				require.Contains(t, told, row.want, name)
			}
		})
	}
}

// There is no trial that nothing fails.
func TestEveryTrialCanFail(t *testing.T) {
	failed := make(map[string]bool)
	for _, row := range broken {
		for _, name := range row.trials {
			failed[name] = true
		}
	}
	for _, tr := range trials {
		require.True(t, failed[tr.name], tr.name)
	}
}
