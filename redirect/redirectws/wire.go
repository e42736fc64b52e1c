// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// word is a text message. One of its fields is set, or none: then it is a sign of life,
// or of a kind that this version does not know.
type word struct {
	Hello   *helloWord   `json:"hello,omitempty"`
	Goodbye *struct{}    `json:"goodbye,omitempty"`
	Reply   *replyWord   `json:"reply,omitempty"`
	Verdict *verdictWord `json:"verdict,omitempty"`
	Notice  *noticeWord  `json:"notice,omitempty"`
	Request *requestWord `json:"request,omitempty"`
	Cancel  *cancelWord  `json:"cancel,omitempty"`
}

type helloWord struct {
	Member      string   `json:"member,omitempty"`
	Session     string   `json:"session,omitempty"`
	Generation  number   `json:"generation,omitempty"`
	Stay        bool     `json:"stay,omitempty"`
	Hops        count    `json:"hops,omitempty"`
	Cap         count    `json:"cap,omitempty"`
	Avoid       []string `json:"avoid,omitempty"`
	Full        []string `json:"full,omitempty"`
	CanRedirect bool     `json:"canRedirect,omitempty"`
	Home        string   `json:"home,omitempty"`
	Proof       []byte   `json:"proof,omitempty"`
	Answers     bool     `json:"answers,omitempty"`
}

type verdictWord struct {
	Outcome     string   `json:"outcome,omitempty"`
	Reason      string   `json:"reason,omitempty"`
	Gateway     string   `json:"gateway,omitempty"`
	Endpoint    string   `json:"endpoint,omitempty"`
	Incarnation number   `json:"incarnation,omitempty"`
	Cap         count    `json:"cap,omitempty"`
	Full        []string `json:"full,omitempty"`
	RetryAfter  span     `json:"retryAfter,omitempty"`
	Generation  number   `json:"generation,omitempty"`
	Proof       []byte   `json:"proof,omitempty"`
}

type noticeWord struct {
	Kind        string `json:"kind,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Gateway     string `json:"gateway,omitempty"`
	Endpoint    string `json:"endpoint,omitempty"`
	Incarnation number `json:"incarnation,omitempty"`
	Cap         count  `json:"cap,omitempty"`
	Proof       []byte `json:"proof,omitempty"`
}

type requestWord struct {
	ID      number `json:"id,omitempty"`
	Payload []byte `json:"payload,omitempty"`
	Timeout span   `json:"timeout,omitempty"` // 0: not known
}

type cancelWord struct {
	ID number `json:"id,omitempty"`
}

type replyWord struct {
	ID      number `json:"id,omitempty"` // 0 outside a stream
	Outcome string `json:"outcome,omitempty"`
	Payload []byte `json:"payload,omitempty"`
	Status  int    `json:"status,omitempty"` // 0: it is an answer
	Message string `json:"message,omitempty"`
}

type callWord struct {
	Member     string `json:"member,omitempty"`
	Session    string `json:"session,omitempty"`
	Payload    []byte `json:"payload,omitempty"`
	Idempotent bool   `json:"idempotent,omitempty"`
	Timeout    span   `json:"timeout,omitempty"` // 0: the gateway's own
}

type questionWord struct {
	From       string       `json:"from,omitempty"`
	Member     string       `json:"member,omitempty"`
	Generation number       `json:"generation,omitempty"`
	Limit      count        `json:"limit,omitempty"`
	Insist     bool         `json:"insist,omitempty"`
	Reports    []reportWord `json:"reports,omitempty"`
}

type answerWord struct {
	Gateway string       `json:"gateway,omitempty"`
	Yes     bool         `json:"yes,omitempty"`
	State   string       `json:"state,omitempty"`
	Reports []reportWord `json:"reports,omitempty"`
	Limit   count        `json:"limit,omitempty"`
}

type reportWord struct {
	Gateway string     `json:"gateway,omitempty"`
	Counts  countsWord `json:"counts"`
}

type countsWord struct {
	Incarnation number `json:"incarnation,omitempty"`
	Sequence    number `json:"sequence,omitempty"`
	Attached    count  `json:"attached,omitempty"`
	Held        count  `json:"held,omitempty"`
	Reserved    count  `json:"reserved,omitempty"`
}

// number is written as a string, for many readers of JSON round numbers beyond
// 2^53. It is read from either.
type number uint64

// MarshalJSON implements [json.Marshaler].
func (n number) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(n), 10)), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	v, err := strconv.ParseUint(unquoted(data), 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not a number of 64 bits: %w", data, err)
	}
	*n = number(v)
	return nil
}

// count is written as a number, and read from a string too. It saturates where int has 32 bits.
type count int

// UnmarshalJSON implements [json.Unmarshaler].
func (c *count) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	v, err := strconv.ParseInt(unquoted(data), 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not a count: %w", data, err)
	}
	*c = count(min(max(v, math.MinInt), math.MaxInt))
	return nil
}

// span is written as seconds: "1.5s".
type span time.Duration

// MarshalJSON implements [json.Marshaler].
func (s span) MarshalJSON() ([]byte, error) {
	sign, v := "", uint64(s)
	if s < 0 {
		sign, v = "-", -v
	}
	text := sign + strconv.FormatUint(v/uint64(time.Second), 10)
	if rest := v % uint64(time.Second); rest > 0 {
		text += "." + strings.TrimRight(fmt.Sprintf("%09d", rest), "0")
	}
	return strconv.AppendQuote(nil, text+"s"), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *span) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	bad := fmt.Errorf(`%s is not a duration such as "1.5s"`, data)
	var text string
	if json.Unmarshal(data, &text) != nil {
		return bad
	}
	text, inSeconds := strings.CutSuffix(text, "s")
	digits, negative := strings.CutPrefix(text, "-")
	whole, part, dotted := strings.Cut(digits, ".")
	if !inSeconds || !numeral(whole) || dotted && !numeral(part) || len(part) > 9 {
		return bad
	}
	v, err := strconv.ParseUint(whole+(part + "000000000")[:9], 10, 64)
	switch limit := uint64(math.MaxInt64); {
	case err != nil, v > limit && !negative, v > limit+1:
		return fmt.Errorf("%s is longer than %v", data, time.Duration(math.MaxInt64))
	case negative:
		*s = span(-v) // the least one, too
	default:
		*s = span(v)
	}
	return nil
}

func numeral(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// unquoted returns the text of a JSON string without escapes, or else data.
func unquoted(data []byte) string {
	if n := len(data); n >= 2 && data[0] == '"' && data[n-1] == '"' {
		return string(data[1 : n-1])
	}
	return string(data)
}

var errNotUTF8 = errors.New("text must be UTF-8")

// encode writes w. Text that is not UTF-8 is an error.
func encode(w any, texts ...string) ([]byte, error) {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("%w: %q", errNotUTF8, text)
		}
	}
	return json.Marshal(w)
}

// decode reads into w what encode, of this version or another, has written.
func decode(data []byte, w any) error {
	if !utf8.Valid(data) {
		return errNotUTF8
	}
	return json.Unmarshal(data, w)
}

func encodeHello(h redirect.Hello) ([]byte, error) {
	w := helloToWire(h)
	texts := append([]string{w.Member, w.Session, w.Home}, w.Avoid...)
	return encode(word{Hello: w}, append(texts, w.Full...)...)
}

func encodeVerdict(v redirect.Verdict) ([]byte, error) {
	w := verdictToWire(v)
	return encode(word{Verdict: w}, append([]string{w.Gateway, w.Endpoint}, w.Full...)...)
}

func encodeNotice(n redirect.Notice) ([]byte, error) {
	w := noticeToWire(n)
	return encode(word{Notice: w}, w.Gateway, w.Endpoint)
}

func encodeQuestion(q placement.Question) ([]byte, error) {
	w := questionToWire(q)
	return encode(w, append([]string{w.From, w.Member}, reporters(w.Reports)...)...)
}

func encodeAnswer(a placement.Answer) ([]byte, error) {
	w := answerToWire(a)
	return encode(w, append([]string{w.Gateway}, reporters(w.Reports)...)...)
}

func encodeCall(r redirect.Request, timeout time.Duration) ([]byte, error) {
	return encode(callToWire(r, timeout), string(r.Member), string(r.Session))
}

func reporters(ws []reportWord) []string {
	var ids []string
	for _, w := range ws {
		ids = append(ids, w.Gateway)
	}
	return ids
}

// The conversions lose nothing, but for one thing: an empty slice comes back
// as nil. They copy what they keep, but for the payloads of requests.

func helloToWire(h redirect.Hello) *helloWord {
	return &helloWord{
		Member:      string(h.Member),
		Session:     string(h.Session),
		Generation:  number(h.Generation),
		Stay:        h.Stay,
		Hops:        count(h.Hops),
		Cap:         count(h.Cap),
		Avoid:       idsToWire(h.Avoid),
		Full:        idsToWire(h.Full),
		CanRedirect: h.CanRedirect,
		Home:        string(h.Home),
		Proof:       bytes.Clone(h.Proof),
		Answers:     h.Answers,
	}
}

func helloFromWire(w *helloWord) redirect.Hello {
	return redirect.Hello{
		Member:      ring.MemberID(w.Member),
		Session:     redirect.SessionID(w.Session),
		Generation:  placement.Generation(w.Generation),
		Stay:        w.Stay,
		Hops:        int(w.Hops),
		Cap:         int(w.Cap),
		Avoid:       idsFromWire(w.Avoid),
		Full:        idsFromWire(w.Full),
		CanRedirect: w.CanRedirect,
		Home:        ring.GatewayID(w.Home),
		Proof:       some(w.Proof),
		Answers:     w.Answers,
	}
}

func verdictToWire(v redirect.Verdict) *verdictWord {
	return &verdictWord{
		Outcome:     v.Outcome.String(),
		Reason:      v.Reason.String(),
		Gateway:     string(v.Gateway),
		Endpoint:    v.Endpoint,
		Incarnation: number(v.Incarnation),
		Cap:         count(v.Cap),
		Full:        idsToWire(v.Full),
		RetryAfter:  span(v.RetryAfter),
		Generation:  number(v.Generation),
		Proof:       bytes.Clone(v.Proof),
	}
}

func verdictFromWire(w *verdictWord) redirect.Verdict {
	return redirect.Verdict{
		Outcome:     redirect.ParseOutcome(w.Outcome),
		Reason:      redirect.ParseReason(w.Reason),
		Gateway:     ring.GatewayID(w.Gateway),
		Endpoint:    w.Endpoint,
		Incarnation: placement.Incarnation(w.Incarnation),
		Cap:         int(w.Cap),
		Full:        idsFromWire(w.Full),
		RetryAfter:  time.Duration(w.RetryAfter),
		Generation:  placement.Generation(w.Generation),
		Proof:       some(w.Proof),
	}
}

func noticeToWire(n redirect.Notice) *noticeWord {
	return &noticeWord{
		Kind:        n.Kind.String(),
		Reason:      n.Reason.String(),
		Gateway:     string(n.Gateway),
		Endpoint:    n.Endpoint,
		Incarnation: number(n.Incarnation),
		Cap:         count(n.Cap),
		Proof:       bytes.Clone(n.Proof),
	}
}

func noticeFromWire(w *noticeWord) redirect.Notice {
	return redirect.Notice{
		Kind:        redirect.ParseNoticeKind(w.Kind),
		Reason:      redirect.ParseReason(w.Reason),
		Gateway:     ring.GatewayID(w.Gateway),
		Endpoint:    w.Endpoint,
		Incarnation: placement.Incarnation(w.Incarnation),
		Cap:         int(w.Cap),
		Proof:       some(w.Proof),
	}
}

func questionToWire(q placement.Question) *questionWord {
	return &questionWord{
		From:       string(q.From),
		Member:     string(q.Member),
		Generation: number(q.Generation),
		Limit:      count(q.Limit),
		Insist:     q.Insist,
		Reports:    reportsToWire(q.Reports),
	}
}

func questionFromWire(w *questionWord) placement.Question {
	return placement.Question{
		From:       ring.GatewayID(w.From),
		Member:     ring.MemberID(w.Member),
		Generation: placement.Generation(w.Generation),
		Limit:      int(w.Limit),
		Insist:     w.Insist,
		Reports:    reportsFromWire(w.Reports),
	}
}

func answerToWire(a placement.Answer) *answerWord {
	return &answerWord{
		Gateway: string(a.Gateway),
		Yes:     a.Yes,
		State:   a.State.String(),
		Reports: reportsToWire(a.Reports),
		Limit:   count(a.Limit),
	}
}

func answerFromWire(w *answerWord) placement.Answer {
	return placement.Answer{
		Gateway: ring.GatewayID(w.Gateway),
		Yes:     w.Yes,
		State:   placement.ParseState(w.State),
		Reports: reportsFromWire(w.Reports),
		Limit:   int(w.Limit),
	}
}

func callToWire(r redirect.Request, timeout time.Duration) *callWord {
	return &callWord{
		Member:     string(r.Member),
		Session:    string(r.Session),
		Payload:    r.Payload,
		Idempotent: r.Idempotent,
		Timeout:    span(timeout),
	}
}

func callFromWire(w *callWord) redirect.Request {
	return redirect.Request{
		Member:     ring.MemberID(w.Member),
		Session:    redirect.SessionID(w.Session),
		Payload:    some(w.Payload),
		Idempotent: w.Idempotent,
	}
}

func reportsToWire(reports []placement.Report) []reportWord {
	var ws []reportWord
	for _, r := range reports {
		ws = append(ws, reportWord{
			Gateway: string(r.Gateway),
			Counts: countsWord{
				Incarnation: number(r.Incarnation),
				Sequence:    number(r.Sequence),
				Attached:    count(r.Attached),
				Held:        count(r.Held),
				Reserved:    count(r.Reserved),
			},
		})
	}
	return ws
}

func reportsFromWire(ws []reportWord) []placement.Report {
	var reports []placement.Report
	for _, w := range ws {
		reports = append(reports, placement.Report{
			Gateway: ring.GatewayID(w.Gateway),
			Counts: placement.Counts{
				Incarnation: placement.Incarnation(w.Counts.Incarnation),
				Sequence:    uint64(w.Counts.Sequence),
				Attached:    int(w.Counts.Attached),
				Held:        int(w.Counts.Held),
				Reserved:    int(w.Counts.Reserved),
			},
		})
	}
	return reports
}

func idsToWire(ids []ring.GatewayID) []string {
	var ws []string
	for _, id := range ids {
		ws = append(ws, string(id))
	}
	return ws
}

func idsFromWire(ws []string) []ring.GatewayID {
	var ids []ring.GatewayID
	for _, w := range ws {
		ids = append(ids, ring.GatewayID(w))
	}
	return ids
}

// some returns nil for bytes that are none.
func some(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
