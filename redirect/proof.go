// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// The defaults of [Proofs]. Those of a redirect's proof are Config.Reserve and
// the time that a supervisor gives a dial.
const (
	proofDial        = 10 * time.Second
	DefaultProofHome = 24 * time.Hour
	DefaultProofSkew = 30 * time.Second

	proofKeyLength = 32 // the least that is a key
	proofKeys      = 2  // the most
)

// Proofs let a gateway tell a supervisor that was sent to it from one that
// merely says so. Gateways put a proof into every Redirect, every Accept and
// every notice to move, and now and then a new one into a heartbeat; the supervisor shows
// the last one in the hello that follows, and does not look into it. The zero value has no keys: no proofs are made, and
// those in hellos are not looked at.
//
// A hello that asks to stay is judged so, once the gateway has keys:
//
//   - A proof for this member and this gateway, of this incarnation or an
//     earlier one: it stays, above the cap too. The gateway may have restarted.
//   - None; one for another gateway; one that has run out; one for a later
//     incarnation; one of a version that is not known: as without a proof. If
//     Required it is placed as a newcomer, and stays otherwise.
//   - One with a wrong code, which is also what one for another member looks
//     like: refused, with [ReasonBadProof], Required or not. It had better come
//     back without.
//
// Nobody gets stuck. A gateway that has the member's seat, attached or on hold,
// or that was asked over the peer link to keep a place for it, knows by itself,
// and wants no proof. And a member that was sent to a gateway, shows the proof
// of it, and names that gateway in Hello.Avoid could not get there: it stays
// where it comes to. Hops below those that a proof speaks of are not believed.
// Child sessions need no proofs, for they never count.
//
// A client that says that it cannot follow redirects is served as an old one,
// with a reason of its own in the verdict: proofs are against a stay that is claimed by
// mistake or for convenience. That Hello.Member is who it says is for the
// transport to find out.
//
// All gateways need the same keys. To change them, go through the gateways
// three times, one gateway at a time: {old, new}, {new, old}, {new}; before
// the third, wait for Home and Skew to pass. No proof is refused meanwhile. To
// introduce proofs, require them only once every gateway has the keys and every
// supervisor shows what it gets.
//
// # Encoding
//
// This is a contract; testdata/proofs/vectors.txt has examples. Integers are big-endian.
//
//	1 byte    version, 1
//	1 byte    hops: redirects followed once the member is there; 255 is 255 or more; 0: it was accepted there
//	8 bytes   incarnation of the gateway
//	8 bytes   when it runs out, in milliseconds since 1970, signed
//	n bytes   ID of the gateway, at least one
//	32 bytes  HMAC-SHA-256, by the key, of three texts, each after its length in 8 bytes:
//	          "evenring redirect proof", the member ID, and all of the above
type Proofs struct {
	// Keys are shared by all gateways: at least 32 random bytes each, at most
	// two of them. The first one signs, each one verifies.
	Keys [][]byte

	// Required makes a stay without a proof that holds a placement. It needs Keys.
	Required bool

	Redirect time.Duration // how long the proof of a redirect or of a notice holds; 0: Config.Reserve and 10 s
	Home     time.Duration // how long the proof of an accept holds, to come back with, or of a heartbeat, which brings one each third of that; 0: 24 h
	Skew     time.Duration // by how much the clocks of two gateways may differ; 0: 30 s
}

// Validate reports every fault, each naming its field. It does not show keys.
func (p Proofs) Validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("redirect: Proofs."+format, args...))
	}
	for i, key := range p.Keys {
		if len(key) < proofKeyLength {
			fault("Keys[%d] has %d bytes; it must have at least %d", i, len(key), proofKeyLength)
		}
		if j := slices.IndexFunc(p.Keys[:i], func(k []byte) bool { return slices.Equal(k, key) }); j >= 0 {
			fault("Keys[%d] is Keys[%d] again", i, j)
		}
	}
	if len(p.Keys) > proofKeys {
		fault("Keys has %d keys; it may have %d: one to sign, and one that is coming or going", len(p.Keys), proofKeys)
	}
	if p.Required && len(p.Keys) == 0 {
		fault("Required needs Keys")
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Redirect", p.Redirect}, {"Home", p.Home}, {"Skew", p.Skew}} {
		if d.value < 0 {
			fault("%s is %v; it cannot be below 0", d.field, d.value)
		}
	}
	return errors.Join(errs...)
}

// resolved returns a copy with every default in its place.
func (p Proofs) resolved(reserve time.Duration) Proofs {
	p.Keys = slices.Clone(p.Keys)
	for i, key := range p.Keys {
		p.Keys[i] = slices.Clone(key)
	}
	p.Redirect = cmp.Or(p.Redirect, reserve+proofDial)
	p.Home = cmp.Or(p.Home, DefaultProofHome)
	p.Skew = cmp.Or(p.Skew, DefaultProofSkew)
	return p
}

// proof is what one says, apart from whose it is.
type proof struct {
	gateway     ring.GatewayID
	incarnation placement.Incarnation
	hops        int
	expires     time.Time // to the millisecond
}

const (
	proofVersion = 1
	proofDomain  = "evenring redirect proof"
	proofHead    = 1 + 1 + 8 + 8
)

// sent returns the proof that m was sent to a gateway.
func (p Proofs) sent(now time.Time, m ring.MemberID, to ring.GatewayID, incarnation placement.Incarnation, hops int) []byte {
	return p.sign(m, proof{gateway: to, incarnation: incarnation, hops: hops, expires: now.Add(p.Redirect)})
}

// kept returns the proof that m was accepted by a gateway.
func (p Proofs) kept(now time.Time, m ring.MemberID, by ring.GatewayID, incarnation placement.Incarnation) []byte {
	return p.sign(m, proof{gateway: by, incarnation: incarnation, expires: now.Add(p.Home)})
}

// renewal returns when the proof of an accept is to be made anew: early enough for
// one that is lost, and the one after it.
func (p Proofs) renewal(now time.Time) time.Time { return now.Add(p.Home / 3) }

// sign encodes a proof for m; nil: there are no keys.
func (p Proofs) sign(m ring.MemberID, said proof) []byte {
	if len(p.Keys) == 0 {
		return nil
	}
	text := make([]byte, 0, proofHead+len(said.gateway)+sha256.Size)
	text = append(text, proofVersion, byte(min(max(said.hops, 0), math.MaxUint8)))
	text = binary.BigEndian.AppendUint64(text, uint64(said.incarnation))
	text = binary.BigEndian.AppendUint64(text, uint64(said.expires.UnixMilli()))
	text = append(text, said.gateway...)
	return append(text, proofCode(p.Keys[0], m, text)...)
}

func proofCode(key []byte, m ring.MemberID, text []byte) []byte {
	code := hmac.New(sha256.New, key)
	var length [8]byte
	for _, part := range [][]byte{[]byte(proofDomain), []byte(m), text} {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		code.Write(length[:])
		code.Write(part)
	}
	return code.Sum(nil)
}

// read takes a proof apart. Known is false if there is none, or one of another
// version; genuine is whether it is m's, by one of the keys. One that is cut
// short names no gateway.
func (p Proofs) read(m ring.MemberID, text []byte) (said proof, known, genuine bool) {
	if len(text) == 0 || text[0] != proofVersion {
		return proof{}, false, false
	}
	if len(text) <= proofHead+sha256.Size {
		return proof{}, true, false
	}
	text, code := text[:len(text)-sha256.Size], text[len(text)-sha256.Size:]
	for _, key := range p.Keys {
		if hmac.Equal(code, proofCode(key, m, text)) {
			genuine = true
		}
	}
	return proof{
		hops:        int(text[1]),
		incarnation: placement.Incarnation(binary.BigEndian.Uint64(text[2:])),
		expires:     time.UnixMilli(int64(binary.BigEndian.Uint64(text[10:]))),
		gateway:     ring.GatewayID(text[proofHead:]),
	}, true, genuine
}

// standing is what a hello's proof comes to.
type standing uint8

const (
	unproved standing = iota // none that holds here
	astray                   // it was sent to a gateway that it says it could not reach
	proved                   // it may stay here
	forged
)

// judge looks at the proof in h at the gateway self. Hops is what h is to be
// believed to have followed.
func (p Proofs) judge(now time.Time, self ring.GatewayID, incarnation placement.Incarnation, h Hello) (s standing, hops int) {
	if len(p.Keys) == 0 || h.Session != "" {
		return unproved, h.Hops
	}
	said, known, genuine := p.read(h.Member, h.Proof)
	switch {
	case !known:
		return unproved, h.Hops
	case said.gateway == "":
		return forged, h.Hops
	case now.After(said.expires.Add(p.Skew)): // it may be by a key that is not in use any more
		return unproved, h.Hops
	case !genuine:
		return forged, h.Hops
	case said.gateway == self && said.incarnation > incarnation:
		return unproved, h.Hops
	case said.gateway == self:
		return proved, max(h.Hops, said.hops)
	case said.hops > 0 && slices.Contains(h.Avoid, said.gateway):
		return astray, h.Hops
	default:
		return unproved, max(h.Hops, said.hops)
	}
}

// prove judges the hello of p, and takes from it what is not believed.
func (a *Admission) prove(now time.Time, p *Admitting) {
	p.standing, p.hello.Hops = a.cfg.Proofs.judge(now, a.cfg.Gateway, a.cfg.Incarnation, p.hello)
	if !a.cfg.Proofs.Required || p.hello.Session != "" || p.standing == proved || p.standing == astray {
		return
	}
	if !a.expects(p.hello.Member) {
		p.hello.Stay = false
	}
}
