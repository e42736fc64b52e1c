// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/ring"
)

// recoded sends w over the wire and back, with a field added that nobody knows.
func recoded[W proto.Message](t testing.TB, w, into W) W {
	data, err := proto.Marshal(w)
	require.NoError(t, err)
	data = protowire.AppendTag(data, 1999, protowire.BytesType)
	data = protowire.AppendString(data, "from a later version")
	require.NoError(t, proto.Unmarshal(data, into))
	return into
}

func sentHello(t testing.TB, h redirect.Hello) redirect.Hello {
	return helloFromWire(recoded(t, helloToWire(h), new(evenringpb.Hello)))
}

func sentVerdict(t testing.TB, v redirect.Verdict) redirect.Verdict {
	return verdictFromWire(recoded(t, verdictToWire(v), new(evenringpb.Verdict)))
}

func sentNotice(t testing.TB, n redirect.Notice) redirect.Notice {
	return noticeFromWire(recoded(t, noticeToWire(n), new(evenringpb.Notice)))
}

func sentQuestion(t testing.TB, q placement.Question) placement.Question {
	return questionFromWire(recoded(t, questionToWire(q), new(evenringpb.Question)))
}

func sentAnswer(t testing.TB, a placement.Answer) placement.Answer {
	return answerFromWire(recoded(t, answerToWire(a), new(evenringpb.Answer)))
}

func sentRequest(t testing.TB, r redirect.Request) redirect.Request {
	return requestFromWire(recoded(t, requestToWire(r), new(evenringpb.CallRequest)))
}

// fill gives every field of v a random value. Sets of words keep to their words. A field of
// a new kind fails the test rather than being passed over.
func fill(t *testing.T, v reflect.Value, rng *rand.Rand) {
	switch at := v.Addr().Interface().(type) {
	case *redirect.Reason:
		*at = redirect.Reasons()[rng.IntN(len(redirect.Reasons()))]
		return
	case *redirect.Outcome:
		*at = redirect.Outcome(rng.IntN(4))
		return
	case *redirect.NoticeKind:
		*at = redirect.NoticeKind(rng.IntN(4))
		return
	case *placement.State:
		*at = placement.State(rng.IntN(3))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("ü", rng.IntN(5)) + "x")
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(rng.Uint64()) >> rng.IntN(64))
	case reflect.Uint64:
		v.SetUint(rng.Uint64() >> rng.IntN(64))
	case reflect.Uint8:
		v.SetUint(rng.Uint64() & 0xff)
	case reflect.Slice:
		if n := rng.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i), rng)
			}
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, rng)
		}
	default:
		require.Failf(t, "cannot fill", "%s", v.Type())
	}
}

// Whatever field is added to a word, it must survive the wire.
func TestWordsSurviveTheWire(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	survives := func(name string, word any, send func() any) {
		v := reflect.ValueOf(word).Elem()
		v.SetZero()
		require.Equal(t, v.Interface(), send(), "%s, zero", name)
		for range 300 {
			v.SetZero()
			fill(t, v, rng)
			require.Equal(t, v.Interface(), send(), name)
		}
	}
	var (
		hello    redirect.Hello
		verdict  redirect.Verdict
		notice   redirect.Notice
		question placement.Question
		answer   placement.Answer
		request  redirect.Request
	)
	survives("hello", &hello, func() any { return sentHello(t, hello) })
	survives("verdict", &verdict, func() any { return sentVerdict(t, verdict) })
	survives("notice", &notice, func() any { return sentNotice(t, notice) })
	survives("question", &question, func() any { return sentQuestion(t, question) })
	survives("answer", &answer, func() any { return sentAnswer(t, answer) })
	survives("request", &request, func() any { return sentRequest(t, request) })
}

func TestWordsOfClosedSets(t *testing.T) {
	for _, r := range redirect.Reasons() {
		require.Equal(t, r, sentVerdict(t, redirect.Verdict{Reason: r}).Reason)
		require.Equal(t, r, sentNotice(t, redirect.Notice{Reason: r}).Reason)
	}
	for _, o := range append(redirect.Outcomes(), redirect.None) {
		require.Equal(t, o, sentVerdict(t, redirect.Verdict{Outcome: o}).Outcome)
	}
	for _, k := range []redirect.NoticeKind{redirect.NoticeNone, redirect.NoticeMove, redirect.NoticeEnd, redirect.NoticeHeartbeat} {
		require.Equal(t, k, sentNotice(t, redirect.Notice{Kind: k}).Kind)
	}
	for _, s := range []placement.State{placement.Starting, placement.Ready, placement.Draining} {
		require.Equal(t, s, sentAnswer(t, placement.Answer{State: s}).State)
	}
}

func TestUnknownWordsAreHarmless(t *testing.T) {
	verdict := verdictFromWire(&evenringpb.Verdict{Outcome: "teleport", Reason: "because", Gateway: "gw"})
	require.Equal(t, redirect.Verdict{Gateway: "gw"}, verdict)
	notice := noticeFromWire(&evenringpb.Notice{Kind: "sing", Reason: "because", Gateway: "gw"})
	require.Equal(t, redirect.Notice{Gateway: "gw"}, notice)
	answer := answerFromWire(&evenringpb.Answer{State: "dreaming", Yes: true, Gateway: "gw"})
	require.Equal(t, placement.Answer{Gateway: "gw", Yes: true, State: placement.Starting}, answer)
	require.Equal(t, []placement.Report{{Gateway: "gw"}}, reportsFromWire([]*evenringpb.Report{{Gateway: "gw"}}), "a report without counts")
}

func TestAbsentMessagesAreZero(t *testing.T) {
	require.Zero(t, helloFromWire(nil))
	require.Zero(t, verdictFromWire(nil))
	require.Zero(t, noticeFromWire(nil))
	require.Zero(t, questionFromWire(nil))
	require.Zero(t, answerFromWire(nil))
}

func TestConversionsShareNothing(t *testing.T) {
	hello := redirect.Hello{Proof: []byte("proof"), Avoid: []ring.GatewayID{"a"}}
	wire := helloToWire(hello)
	back := helloFromWire(wire)
	hello.Proof[0], hello.Avoid[0] = 'X', "X"
	require.Equal(t, []byte("proof"), wire.GetProof())
	wire.Proof[0], wire.Avoid[0] = 'Y', "Y"
	require.Equal(t, redirect.Hello{Proof: []byte("proof"), Avoid: []ring.GatewayID{"a"}}, back)
}

// ids cuts text into IDs, none of them more than once empty.
func ids(text string) []ring.GatewayID {
	var all []ring.GatewayID
	if text != "" {
		for part := range strings.SplitSeq(text, ",") {
			all = append(all, ring.GatewayID(part))
		}
	}
	return all
}

func FuzzHello(f *testing.F) {
	f.Add("m", "", uint64(1), true, 0, 0, "", "", false, "", []byte(nil))
	f.Add("m", "s", uint64(math.MaxUint64), false, math.MaxInt, math.MinInt, "a,b,", "ü", true, "a", []byte{0, 0xff})
	f.Add("\xff", "", uint64(1), false, 0, 0, "", "", false, "", []byte(nil))
	f.Fuzz(func(t *testing.T, member, session string, generation uint64, stay bool, hops, limit int, avoid, full string, can bool, home string, proof []byte) {
		hello := redirect.Hello{
			Member: ring.MemberID(member), Session: redirect.SessionID(session), Generation: placement.Generation(generation),
			Stay: stay, Hops: hops, Cap: limit, Avoid: ids(avoid), Full: ids(full), CanRedirect: can, Home: ring.GatewayID(home), Proof: proof,
		}
		if !utf8.ValidString(member + "," + session + "," + avoid + "," + full + "," + home) {
			_, err := proto.Marshal(helloToWire(hello))
			require.Error(t, err, "text that is not UTF-8 must not leave unnoticed")
			return
		}
		if len(proof) == 0 {
			hello.Proof = nil
		}
		require.Equal(t, hello, sentHello(t, hello))
	})
}

func FuzzVerdict(f *testing.F) {
	f.Add(uint8(1), uint8(1), "gw", "gw:443", uint64(1), 3, "a,b", int64(1e9), uint64(0))
	f.Add(uint8(3), uint8(255), "", "", uint64(math.MaxUint64), math.MinInt, "", int64(math.MinInt64), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, outcome, reason uint8, gateway, endpoint string, incarnation uint64, limit int, full string, retry int64, generation uint64) {
		verdict := redirect.Verdict{
			Outcome: redirect.Outcome(outcome), Reason: redirect.Reason(reason), Gateway: ring.GatewayID(gateway), Endpoint: endpoint,
			Incarnation: placement.Incarnation(incarnation), Cap: limit, Full: ids(full),
			RetryAfter: time.Duration(retry), Generation: placement.Generation(generation),
		}
		if !utf8.ValidString(gateway + "," + endpoint + "," + full) {
			return
		}
		got := sentVerdict(t, verdict)
		require.Equal(t, verdict.Outcome.String(), got.Outcome.String())
		require.Equal(t, verdict.Reason.String(), got.Reason.String())
		verdict.Outcome, verdict.Reason = got.Outcome, got.Reason
		require.Equal(t, verdict, got)
	})
}

// FuzzFrames reads any bytes as every message there is: what can be read can
// be converted, and comes out the same a second time.
func FuzzFrames(f *testing.F) {
	seeds := []proto.Message{
		&evenringpb.ClientFrame{Frame: &evenringpb.ClientFrame_Hello{Hello: helloToWire(someHello)}},
		&evenringpb.ClientFrame{Frame: &evenringpb.ClientFrame_Goodbye{}},
		verdictFrame(redirect.Verdict{Outcome: redirect.Refuse, RetryAfter: time.Second}),
		noticeFrame(redirect.Notice{Kind: redirect.NoticeMove, Gateway: "gw"}),
		payloadFrame("payload"),
		questionToWire(placement.Question{Member: "m", Reports: []placement.Report{{Gateway: "gw"}}}),
		answerToWire(placement.Answer{Gateway: "gw", State: placement.Ready}),
		&evenringpb.ServerFrame{Frame: &evenringpb.ServerFrame_Request{Request: &evenringpb.Request{Id: 1, Payload: []byte("x")}}},
		&evenringpb.ClientFrame{Frame: &evenringpb.ClientFrame_Reply{Reply: &evenringpb.Reply{Id: 1, Outcome: "answered", Code: 5, Message: "m"}}},
		requestToWire(redirect.Request{Member: "m", Session: "s", Payload: []byte("x"), Idempotent: true}),
	}
	for _, m := range seeds {
		data, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var up evenringpb.ClientFrame
		if proto.Unmarshal(data, &up) == nil && up.GetHello() != nil {
			hello := helloFromWire(up.GetHello())
			require.Equal(t, hello, sentHello(t, hello))
		}
		var down evenringpb.ServerFrame
		if proto.Unmarshal(data, &down) == nil {
			verdict, notice := verdictFromWire(down.GetVerdict()), noticeFromWire(down.GetNotice())
			require.Equal(t, verdict, sentVerdict(t, verdict))
			require.Equal(t, notice, sentNotice(t, notice))
		}
		var q evenringpb.Question
		if proto.Unmarshal(data, &q) == nil {
			question := questionFromWire(&q)
			require.Equal(t, question, sentQuestion(t, question))
		}
		var a evenringpb.Answer
		if proto.Unmarshal(data, &a) == nil {
			answer := answerFromWire(&a)
			require.Equal(t, answer, sentAnswer(t, answer))
		}
		var c evenringpb.CallRequest
		if proto.Unmarshal(data, &c) == nil {
			request := requestFromWire(&c)
			require.Equal(t, request, sentRequest(t, request))
		}
		var r evenringpb.Reply
		if proto.Unmarshal(data, &r) == nil {
			answer, err := replyFromWire(&r)
			require.False(t, len(answer) > 0 && err != nil, "an answer and an error")
			_, again := replyFromWire(replyToWire(answer, err))
			require.Equal(t, err, again)
		}
	})
}

// The numbers of the fields are what other versions, and other languages, rely on.
func TestHelloBytes(t *testing.T) {
	var want []byte
	text := func(n protowire.Number, s string) {
		want = protowire.AppendTag(want, n, protowire.BytesType)
		want = protowire.AppendString(want, s)
	}
	number := func(n protowire.Number, v uint64) {
		want = protowire.AppendTag(want, n, protowire.VarintType)
		want = protowire.AppendVarint(want, v)
	}
	text(1, "member")
	text(2, "session")
	number(3, 7)
	number(4, 1)
	number(5, 2)
	number(6, 30)
	text(7, "lost")
	text(8, "full")
	number(9, 1)
	text(10, "home")
	text(11, "proof")
	number(12, 1)
	got, err := proto.MarshalOptions{Deterministic: true}.Marshal(helloToWire(redirect.Hello{
		Member: "member", Session: "session", Generation: 7, Stay: true, Hops: 2, Cap: 30,
		Avoid: []ring.GatewayID{"lost"}, Full: []ring.GatewayID{"full"}, CanRedirect: true, Home: "home", Proof: []byte("proof"), Answers: true,
	}))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%x\n%x", want, got)
}
