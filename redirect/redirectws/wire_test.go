// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recoded sends w over the wire and back, with a field added that nobody knows.
func recoded(t testing.TB, w, into any) {
	data, err := encode(w)
	require.NoError(t, err)
	require.NoError(t, decode(later(data), into))
}

// later is the word as a later version writes it.
func later(data []byte) []byte {
	if string(data) == "{}" {
		return []byte(`{"fromALaterVersion":[{}]}`)
	}
	return append([]byte(`{"fromALaterVersion":[{}],`), data[1:]...)
}

// sent sends a word, as its encoder writes it.
func sent(t testing.TB, data []byte, err error) (w word) {
	require.NoError(t, err)
	require.NoError(t, decode(later(data), &w))
	return w
}

func sentHello(t testing.TB, h redirect.Hello) redirect.Hello {
	data, err := encodeHello(h)
	return helloFromWire(sent(t, data, err).Hello)
}

func sentVerdict(t testing.TB, v redirect.Verdict) redirect.Verdict {
	data, err := encodeVerdict(v)
	return verdictFromWire(sent(t, data, err).Verdict)
}

func sentNotice(t testing.TB, n redirect.Notice) redirect.Notice {
	data, err := encodeNotice(n)
	return noticeFromWire(sent(t, data, err).Notice)
}

func sentQuestion(t testing.TB, q placement.Question) placement.Question {
	data, err := encodeQuestion(q)
	require.NoError(t, err)
	var w questionWord
	require.NoError(t, decode(later(data), &w))
	return questionFromWire(&w)
}

func sentAnswer(t testing.TB, a placement.Answer) placement.Answer {
	data, err := encodeAnswer(a)
	require.NoError(t, err)
	var w answerWord
	require.NoError(t, decode(later(data), &w))
	return answerFromWire(&w)
}

func sentRequest(t testing.TB, r redirect.Request) redirect.Request {
	data, err := encodeCall(r, time.Minute)
	require.NoError(t, err)
	var w callWord
	require.NoError(t, decode(later(data), &w))
	require.Equal(t, span(time.Minute), w.Timeout)
	return callFromWire(&w)
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
		v.SetString(strings.Repeat("ü\"\\<\u2028", rng.IntN(5)) + "x")
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

func TestUnknownWordsAreHarmless(t *testing.T) {
	verdict := verdictFromWire(&verdictWord{Outcome: "teleport", Reason: "because", Gateway: "gw"})
	require.Equal(t, redirect.Verdict{Gateway: "gw"}, verdict)
	notice := noticeFromWire(&noticeWord{Kind: "sing", Reason: "because", Gateway: "gw"})
	require.Equal(t, redirect.Notice{Gateway: "gw"}, notice)
	answer := answerFromWire(&answerWord{State: "dreaming", Yes: true, Gateway: "gw"})
	require.Equal(t, placement.Answer{Gateway: "gw", Yes: true, State: placement.Starting}, answer)
	require.Equal(t, []placement.Report{{Gateway: "gw"}}, reportsFromWire([]reportWord{{Gateway: "gw"}}), "a report without counts")
}

func TestConversionsShareNothing(t *testing.T) {
	hello := redirect.Hello{Proof: []byte("proof"), Avoid: []ring.GatewayID{"a"}}
	wire := helloToWire(hello)
	hello.Proof[0], hello.Avoid[0] = 'X', "X"
	require.Equal(t, []byte("proof"), wire.Proof)
	require.Equal(t, []string{"a"}, wire.Avoid)
}

func TestTextMustBeUTF8(t *testing.T) {
	const bad = "\xff"
	encoded := func(_ []byte, err error) error { return err }
	for name, err := range map[string]error{
		"member":   encoded(encodeHello(redirect.Hello{Member: bad})),
		"session":  encoded(encodeHello(redirect.Hello{Session: bad})),
		"home":     encoded(encodeHello(redirect.Hello{Home: bad})),
		"avoid":    encoded(encodeHello(redirect.Hello{Avoid: []ring.GatewayID{"a", bad}})),
		"full":     encoded(encodeHello(redirect.Hello{Full: []ring.GatewayID{"a", bad}})),
		"gateway":  encoded(encodeVerdict(redirect.Verdict{Gateway: bad})),
		"endpoint": encoded(encodeVerdict(redirect.Verdict{Endpoint: bad})),
		"target":   encoded(encodeNotice(redirect.Notice{Endpoint: bad})),
		"from":     encoded(encodeQuestion(placement.Question{From: bad})),
		"whom":     encoded(encodeQuestion(placement.Question{Member: bad})),
		"report":   encoded(encodeAnswer(placement.Answer{Reports: []placement.Report{{Gateway: bad}}})),
		"call":     encoded(encodeCall(redirect.Request{Session: bad}, 0)),
	} {
		require.ErrorIs(t, err, errNotUTF8, name)
	}
}

func TestNumbers(t *testing.T) {
	for _, row := range []struct {
		text string
		into any
		want any // nil: an error
	}{
		{`"18446744073709551615"`, new(number), number(math.MaxUint64)},
		{`18446744073709551615`, new(number), number(math.MaxUint64)},
		{`null`, new(number), number(0)},
		{`18446744073709551616`, new(number), nil},
		{`-1`, new(number), nil},
		{`1e3`, new(number), nil},
		{`1.0`, new(number), nil},
		{`""`, new(number), nil},
		{`"\u0031"`, new(number), nil},
		{`true`, new(number), nil},
		{`-3`, new(count), count(-3)},
		{`"7"`, new(count), count(7)},
		{`null`, new(count), count(0)},
		{`1.5`, new(count), nil},
		{`9223372036854775808`, new(count), nil},
		{`"0s"`, new(span), span(0)},
		{`"1.5s"`, new(span), span(1500 * time.Millisecond)},
		{`"-0.000000001s"`, new(span), span(-1)},
		{`"9223372036.854775807s"`, new(span), span(math.MaxInt64)},
		{`"-9223372036.854775808s"`, new(span), span(math.MinInt64)},
		{`null`, new(span), span(0)},
		{`"9223372036.854775808s"`, new(span), nil},
		{`"-9223372036.854775809s"`, new(span), nil},
		{`"99999999999999999999s"`, new(span), nil},
		{`"0.0000000001s"`, new(span), nil},
		{`"1"`, new(span), nil},
		{`"s"`, new(span), nil},
		{`"1.s"`, new(span), nil},
		{`".5s"`, new(span), nil},
		{`"+1s"`, new(span), nil},
		{`"1ms"`, new(span), nil},
		{`1`, new(span), nil},
	} {
		err := json.Unmarshal([]byte(row.text), row.into)
		if row.want == nil {
			require.Error(t, err, row.text)
			continue
		}
		require.NoError(t, err, row.text)
		require.Equal(t, row.want, reflect.ValueOf(row.into).Elem().Interface(), row.text)
	}
}

// The golden files are the contract: what other versions, and other languages, rely on.
func TestGolden(t *testing.T) {
	const big = 1<<63 - 1
	encoded := func(data []byte, err error) []byte {
		require.NoError(t, err)
		return data
	}
	for name, data := range map[string][]byte{
		"hello": encoded(encodeHello(redirect.Hello{
			Member: "sup-1", Session: "box-7", Generation: big, Stay: true, Hops: 1, Cap: 30,
			Avoid: []ring.GatewayID{"gw-0"}, Full: []ring.GatewayID{"gw-1", "gw-2"}, CanRedirect: true, Home: "gw-0", Proof: []byte{0, 255}, Answers: true,
		})),
		"hello-least": encoded(encodeHello(redirect.Hello{Member: "sup-1", Generation: 1})),
		"goodbye":     encoded(encode(word{Goodbye: new(struct{})})),
		"verdict-accept": encoded(encodeVerdict(redirect.Verdict{
			Outcome: redirect.Accept, Reason: redirect.ReasonPlaced, Gateway: "gw-1", Endpoint: "10.0.0.1:443", Incarnation: big, Cap: 30, Proof: []byte("p"),
		})),
		"verdict-redirect": encoded(encodeVerdict(redirect.Verdict{
			Outcome: redirect.Redirect, Reason: redirect.ReasonPlaced, Gateway: "gw-2", Endpoint: "10.0.0.2:443", Incarnation: 7, Cap: 30, Full: []ring.GatewayID{"gw-0"},
		})),
		"verdict-refuse":   encoded(encodeVerdict(redirect.Verdict{Outcome: redirect.Refuse, Reason: redirect.ReasonDraining, RetryAfter: 1500 * time.Millisecond})),
		"verdict-stale":    encoded(encodeVerdict(redirect.Verdict{Outcome: redirect.Refuse, Reason: redirect.ReasonStaleGeneration, RetryAfter: time.Second, Generation: big})),
		"notice-move":      encoded(encodeNotice(redirect.Notice{Kind: redirect.NoticeMove, Reason: redirect.ReasonDraining, Gateway: "gw-2", Endpoint: "10.0.0.2:443", Incarnation: 7, Cap: 31, Proof: []byte("p")})),
		"notice-end":       encoded(encodeNotice(redirect.Notice{Kind: redirect.NoticeEnd, Reason: redirect.ReasonSuperseded, Gateway: "gw-1", Incarnation: 6})),
		"notice-heartbeat": encoded(encodeNotice(redirect.Notice{Kind: redirect.NoticeHeartbeat, Gateway: "gw-1", Incarnation: 6})),
		"request":          encoded(encode(word{Request: &requestWord{ID: 1, Payload: []byte("hi"), Timeout: span(30 * time.Second)}})),
		"cancel":           encoded(encode(word{Cancel: &cancelWord{ID: 1}})),
		"reply":            encoded(encode(word{Reply: &replyWord{ID: 1, Outcome: wireAnswered, Payload: []byte("hello")}})),
		"reply-error":      encoded(encode(word{Reply: &replyWord{ID: 1, Outcome: wireAnswered, Status: 403, Message: "not you"}})),
		"reply-not-here":   encoded(encode(word{Reply: &replyWord{ID: 1, Outcome: wireNotHere}})),
		"ask": encoded(encodeQuestion(placement.Question{
			From: "gw-1", Member: "sup-1", Generation: big, Limit: 30, Insist: true,
			Reports: []placement.Report{{Gateway: "gw-1", Counts: placement.Counts{Incarnation: 6, Sequence: 9, Attached: 3, Held: 2, Reserved: 1}}},
		})),
		"ask-answer": encoded(encodeAnswer(placement.Answer{
			Gateway: "gw-2", Yes: true, State: placement.Ready, Reports: []placement.Report{{Gateway: "gw-2", Counts: placement.Counts{Incarnation: 7, Sequence: 4}}},
		})),
		"call":        encoded(encodeCall(redirect.Request{Member: "sup-1", Session: "box-7", Payload: []byte("hi"), Idempotent: true}, 1500*time.Millisecond)),
		"call-answer": encoded(encode(&replyWord{Outcome: wireAnswered, Payload: []byte("hello")})),
		"call-nobody": encoded(encode(&replyWord{Outcome: "nobody"})),
	} {
		file := filepath.Join("testdata", "golden", name+".json")
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, append(data, '\n'), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(string(want)), string(data), name)
	}
	files, err := os.ReadDir(filepath.Join("testdata", "golden"))
	require.NoError(t, err)
	require.Len(t, files, 20, "each file is looked at")
}

// rewritten reads data as a word of one kind, and writes it again; what it writes is
// read the same.
func rewritten[W any](t *testing.T, data []byte) (first W, ok bool) {
	if decode(data, &first) != nil {
		return first, false
	}
	again, err := encode(first)
	require.NoError(t, err)
	var second W
	require.NoError(t, decode(again, &second), "%s", again)
	third, err := encode(second)
	require.NoError(t, err)
	require.Equal(t, string(again), string(third))
	return first, true
}

// FuzzWord reads anything as a message, both ways: what can be read can be converted,
// and comes out the same a second time.
func FuzzWord(f *testing.F) {
	goldens(f, func(name string) bool { return !strings.HasPrefix(name, "ask") && !strings.HasPrefix(name, "call") })
	f.Fuzz(func(t *testing.T, data []byte) {
		w, ok := rewritten[word](t, data)
		if !ok {
			return
		}
		if w.Hello != nil {
			hello := helloFromWire(w.Hello)
			require.Equal(t, hello, sentHello(t, hello))
		}
		if w.Verdict != nil {
			verdict := verdictFromWire(w.Verdict)
			require.Equal(t, verdict, sentVerdict(t, verdict))
		}
		if w.Notice != nil {
			notice := noticeFromWire(w.Notice)
			require.Equal(t, notice, sentNotice(t, notice))
		}
		if w.Reply != nil {
			answer, err := replyFromWire(w.Reply)
			require.False(t, len(answer) > 0 && err != nil, "an answer and an error")
			_, again := replyFromWire(replyToWire(answer, err))
			if err == nil || !strings.Contains(err.Error(), "\uFFFD") && len(err.Error()) < maxErrorText {
				require.Equal(t, err, again)
			}
		}
	})
}

// FuzzPost does so with what is posted, and with the answers.
func FuzzPost(f *testing.F) {
	goldens(f, func(name string) bool { return strings.HasPrefix(name, "ask") || strings.HasPrefix(name, "call") })
	f.Fuzz(func(t *testing.T, data []byte) {
		if q, ok := rewritten[questionWord](t, data); ok {
			question := questionFromWire(&q)
			require.Equal(t, question, sentQuestion(t, question))
		}
		if a, ok := rewritten[answerWord](t, data); ok {
			answer := answerFromWire(&a)
			require.Equal(t, answer, sentAnswer(t, answer))
		}
		if c, ok := rewritten[callWord](t, data); ok {
			request := callFromWire(&c)
			require.Equal(t, request, sentRequest(t, request))
		}
		if _, ok := rewritten[replyWord](t, data); ok {
			answer, err := answerOf(redirect.Request{Member: "m"}, 200, data)
			require.False(t, len(answer) > 0 && err != nil, "an answer and an error")
		}
	})
}

// FuzzSpan reads durations.
func FuzzSpan(f *testing.F) {
	for _, v := range []int64{0, 1, -1, 1e9, math.MaxInt64, math.MinInt64} {
		f.Add(v, `"1.5s"`)
	}
	f.Fuzz(func(t *testing.T, v int64, text string) {
		data, err := json.Marshal(span(v))
		require.NoError(t, err)
		var back span
		require.NoError(t, json.Unmarshal(data, &back), "%s", data)
		require.Equal(t, span(v), back)
		if json.Unmarshal([]byte(text), &back) == nil {
			v = int64(back)
			data, err = json.Marshal(back)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, &back), "%s", data)
			require.Equal(t, span(v), back)
		}
	})
}

func goldens(f *testing.F, which func(string) bool) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.json"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		if which(filepath.Base(file)) {
			data, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(data)
		}
	}
}
