// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Roster is what /roster says: who serves whom, as one gateway has it. Two
// gateways that agree have equal digests; if they do not, the records say
// about whom, and /roster?members=1 about which supervisors.
type Roster struct {
	Gateway ring.GatewayID `json:"gateway"` // whose roster it is
	Version uint64         `json:"version"` // grows with every change of it, counts included
	Digest  Digest         `json:"digest"`  // of all records together
	Since   time.Time      `json:"since"`   // when a member was last entered or removed in any record
	Records []Record       `json:"records"` // by gateway
}

// Record is one gateway's record in that roster.
type Record struct {
	Gateway     ring.GatewayID        `json:"gateway"`
	Incarnation placement.Incarnation `json:"incarnation,string"`
	Sequence    uint64                `json:"sequence"`          // the number that the members have got to
	Told        uint64                `json:"told"`              // the highest that the gateway has named; above Sequence: this copy is behind
	Attached    int                   `json:"attached"`          // supervisors with a stream there
	Held        int                   `json:"held"`              // supervisors expected back there
	Digest      Digest                `json:"digest"`            // of the members
	ChangedAt   time.Time             `json:"changed_at"`        // when a member was last entered or removed
	Members     []Member              `json:"members,omitempty"` // if asked for; in no order
}

// Member is one supervisor in a record.
type Member struct {
	Member     ring.MemberID        `json:"member"`
	Generation placement.Generation `json:"generation,string"`
	Held       bool                 `json:"held,omitempty"`
}

// Digest is a roster's digest; its text is hexadecimal.
type Digest uint64

// MarshalText implements [encoding.TextMarshaler].
func (d Digest) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(d)), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Digest) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil {
		return fmt.Errorf("gatewayd: %q is no digest", text)
	}
	*d = Digest(v)
	return nil
}

func (p *process) rosterPage(w http.ResponseWriter, r *http.Request) {
	page := Roster{Gateway: p.gateway.ID()}
	p.gateway.Inspect(func(have *roster.Roster) { page.read(have, r.FormValue("members") != "") })
	showJSON(w, http.StatusOK, page)
}

func (page *Roster) read(have *roster.Roster, members bool) {
	digest, since := have.Digest()
	page.Version, page.Digest, page.Since = have.Version(), Digest(digest), since
	for c := range have.Copies() {
		record := Record{
			Gateway: c.Gateway, Incarnation: c.Incarnation, Sequence: c.Sequence, Told: c.Told,
			Attached: c.Attached, Held: c.Held, Digest: Digest(c.Digest), ChangedAt: c.ChangedAt,
		}
		if members {
			record.Members = make([]Member, 0, c.Attached+c.Held)
			for e := range have.Members(c.Gateway) {
				record.Members = append(record.Members, Member{Member: e.Member, Generation: e.Generation, Held: e.Held})
			}
		}
		page.Records = append(page.Records, record)
	}
}
