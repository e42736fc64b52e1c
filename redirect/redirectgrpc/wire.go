// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"bytes"
	"math"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/ring"
)

// The conversions lose nothing, but for one thing: an empty slice comes back
// as nil. They copy what they keep.

func helloToWire(h redirect.Hello) *evenringpb.Hello {
	return &evenringpb.Hello{
		Member:      string(h.Member),
		Session:     string(h.Session),
		Generation:  uint64(h.Generation),
		Stay:        h.Stay,
		Hops:        int64(h.Hops),
		Cap:         int64(h.Cap),
		Avoid:       idsToWire(h.Avoid),
		Full:        idsToWire(h.Full),
		CanRedirect: h.CanRedirect,
		Home:        string(h.Home),
		Proof:       bytes.Clone(h.Proof),
		Answers:     h.Answers,
	}
}

func helloFromWire(w *evenringpb.Hello) redirect.Hello {
	return redirect.Hello{
		Member:      ring.MemberID(w.GetMember()),
		Session:     redirect.SessionID(w.GetSession()),
		Generation:  placement.Generation(w.GetGeneration()),
		Stay:        w.GetStay(),
		Hops:        toInt(w.GetHops()),
		Cap:         toInt(w.GetCap()),
		Avoid:       idsFromWire(w.GetAvoid()),
		Full:        idsFromWire(w.GetFull()),
		CanRedirect: w.GetCanRedirect(),
		Home:        ring.GatewayID(w.GetHome()),
		Proof:       bytes.Clone(w.GetProof()),
		Answers:     w.GetAnswers(),
	}
}

func verdictToWire(v redirect.Verdict) *evenringpb.Verdict {
	w := &evenringpb.Verdict{
		Outcome:     v.Outcome.String(),
		Reason:      v.Reason.String(),
		Gateway:     string(v.Gateway),
		Endpoint:    v.Endpoint,
		Incarnation: uint64(v.Incarnation),
		Cap:         int64(v.Cap),
		Full:        idsToWire(v.Full),
		Generation:  uint64(v.Generation),
		Proof:       bytes.Clone(v.Proof),
	}
	if v.RetryAfter != 0 {
		w.RetryAfter = durationpb.New(v.RetryAfter)
	}
	return w
}

func verdictFromWire(w *evenringpb.Verdict) redirect.Verdict {
	return redirect.Verdict{
		Outcome:     redirect.ParseOutcome(w.GetOutcome()),
		Reason:      redirect.ParseReason(w.GetReason()),
		Gateway:     ring.GatewayID(w.GetGateway()),
		Endpoint:    w.GetEndpoint(),
		Incarnation: placement.Incarnation(w.GetIncarnation()),
		Cap:         toInt(w.GetCap()),
		Full:        idsFromWire(w.GetFull()),
		RetryAfter:  w.GetRetryAfter().AsDuration(),
		Generation:  placement.Generation(w.GetGeneration()),
		Proof:       bytes.Clone(w.GetProof()),
	}
}

func noticeToWire(n redirect.Notice) *evenringpb.Notice {
	return &evenringpb.Notice{
		Kind:        n.Kind.String(),
		Reason:      n.Reason.String(),
		Gateway:     string(n.Gateway),
		Endpoint:    n.Endpoint,
		Incarnation: uint64(n.Incarnation),
		Cap:         int64(n.Cap),
		Proof:       bytes.Clone(n.Proof),
	}
}

func noticeFromWire(w *evenringpb.Notice) redirect.Notice {
	return redirect.Notice{
		Kind:        redirect.ParseNoticeKind(w.GetKind()),
		Reason:      redirect.ParseReason(w.GetReason()),
		Gateway:     ring.GatewayID(w.GetGateway()),
		Endpoint:    w.GetEndpoint(),
		Incarnation: placement.Incarnation(w.GetIncarnation()),
		Cap:         toInt(w.GetCap()),
		Proof:       bytes.Clone(w.GetProof()),
	}
}

func questionToWire(q placement.Question) *evenringpb.Question {
	return &evenringpb.Question{
		From:       string(q.From),
		Member:     string(q.Member),
		Generation: uint64(q.Generation),
		Limit:      int64(q.Limit),
		Insist:     q.Insist,
		Reports:    reportsToWire(q.Reports),
	}
}

func questionFromWire(w *evenringpb.Question) placement.Question {
	return placement.Question{
		From:       ring.GatewayID(w.GetFrom()),
		Member:     ring.MemberID(w.GetMember()),
		Generation: placement.Generation(w.GetGeneration()),
		Limit:      toInt(w.GetLimit()),
		Insist:     w.GetInsist(),
		Reports:    reportsFromWire(w.GetReports()),
	}
}

func answerToWire(a placement.Answer) *evenringpb.Answer {
	return &evenringpb.Answer{
		Gateway: string(a.Gateway),
		Yes:     a.Yes,
		State:   a.State.String(),
		Reports: reportsToWire(a.Reports),
		Limit:   int64(a.Limit),
	}
}

func answerFromWire(w *evenringpb.Answer) placement.Answer {
	return placement.Answer{
		Gateway: ring.GatewayID(w.GetGateway()),
		Yes:     w.GetYes(),
		State:   placement.ParseState(w.GetState()),
		Reports: reportsFromWire(w.GetReports()),
		Limit:   toInt(w.GetLimit()),
	}
}

func requestToWire(r redirect.Request) *evenringpb.CallRequest {
	return &evenringpb.CallRequest{
		Member:     string(r.Member),
		Session:    string(r.Session),
		Payload:    r.Payload, // promised not to be changed
		Idempotent: r.Idempotent,
	}
}

func requestFromWire(w *evenringpb.CallRequest) redirect.Request {
	return redirect.Request{
		Member:     ring.MemberID(w.GetMember()),
		Session:    redirect.SessionID(w.GetSession()),
		Payload:    w.GetPayload(),
		Idempotent: w.GetIdempotent(),
	}
}

func reportsToWire(reports []placement.Report) []*evenringpb.Report {
	var ws []*evenringpb.Report
	for _, r := range reports {
		ws = append(ws, &evenringpb.Report{
			Gateway: string(r.Gateway),
			Counts: &evenringpb.Counts{
				Incarnation: uint64(r.Incarnation),
				Sequence:    r.Sequence,
				Attached:    int64(r.Attached),
				Held:        int64(r.Held),
				Reserved:    int64(r.Reserved),
			},
		})
	}
	return ws
}

func reportsFromWire(ws []*evenringpb.Report) []placement.Report {
	var reports []placement.Report
	for _, w := range ws {
		c := w.GetCounts()
		reports = append(reports, placement.Report{
			Gateway: ring.GatewayID(w.GetGateway()),
			Counts: placement.Counts{
				Incarnation: placement.Incarnation(c.GetIncarnation()),
				Sequence:    c.GetSequence(),
				Attached:    toInt(c.GetAttached()),
				Held:        toInt(c.GetHeld()),
				Reserved:    toInt(c.GetReserved()),
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

// toInt saturates where int has 32 bits.
func toInt(v int64) int { return int(min(max(v, math.MinInt), math.MaxInt)) }
