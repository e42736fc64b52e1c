// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/script"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

var (
	oldKey = bytes.Repeat([]byte{1}, proofKeyLength)
	newKey = bytes.Repeat([]byte{2}, proofKeyLength)
	noon   = time.Unix(1_000_000_000, 0)
)

func keyed(keys ...[]byte) Proofs { return Proofs{Keys: keys}.resolved(DefaultReserve) }

// TestProofVectors holds the encoding to its contract.
func TestProofVectors(t *testing.T) {
	script.Run(t, "testdata/proofs/*.txt", func(t *testing.T) func(string, []string) string {
		return func(_ string, args []string) string {
			of := map[string]string{}
			for _, arg := range args {
				name, value, _ := strings.Cut(arg, "=")
				of[name] = value
			}
			key, err := hex.DecodeString(of["key"])
			require.NoError(t, err)
			incarnation, err := strconv.ParseUint(of["incarnation"], 10, 64)
			require.NoError(t, err)
			hops, err := strconv.Atoi(of["hops"])
			require.NoError(t, err)
			expires, err := strconv.ParseInt(of["expires"], 10, 64)
			require.NoError(t, err)
			said := proof{
				gateway: ring.GatewayID(of["gateway"]), incarnation: placement.Incarnation(incarnation), hops: hops, expires: time.UnixMilli(expires),
			}
			p := keyed(key)
			text := p.sign(ring.MemberID(of["member"]), said)
			said.hops = min(said.hops, 255)
			got, known, genuine := p.read(ring.MemberID(of["member"]), text)
			require.True(t, known && genuine)
			require.Equal(t, said, got)
			return hex.EncodeToString(text)
		}
	})
}

func TestProofsValidate(t *testing.T) {
	for _, row := range []struct {
		name   string
		proofs Proofs
		faults []string
	}{
		{"zero", Proofs{}, nil},
		{"one key", Proofs{Keys: [][]byte{oldKey}, Required: true}, nil},
		{"two keys", Proofs{Keys: [][]byte{newKey, oldKey}, Redirect: time.Second, Home: time.Hour, Skew: time.Minute}, nil},
		{"a short key", Proofs{Keys: [][]byte{oldKey, []byte("secret")}}, []string{"Proofs.Keys[1] has 6 bytes; it must have at least 32"}},
		{"an empty key", Proofs{Keys: [][]byte{nil}}, []string{"Proofs.Keys[0] has 0 bytes"}},
		{"three keys", Proofs{Keys: [][]byte{oldKey, newKey, bytes.Repeat([]byte{3}, 32)}}, []string{"Proofs.Keys has 3 keys"}},
		{"a key twice", Proofs{Keys: [][]byte{oldKey, oldKey}}, []string{"Proofs.Keys[1] is Keys[0] again"}},
		{"required of nothing", Proofs{Required: true}, []string{"Proofs.Required needs Keys"}},
		{"times", Proofs{Redirect: -1, Home: -2, Skew: -3}, []string{"Proofs.Redirect is -1ns", "Proofs.Home is -2ns", "Proofs.Skew is -3ns"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := Config{Gateway: "A", Incarnation: 1, Proofs: row.proofs}.Validate()
			if row.faults == nil {
				require.NoError(t, err)
			}
			for _, fault := range row.faults {
				require.ErrorContains(t, err, fault)
			}
			if err != nil {
				require.NotContains(t, err.Error(), "secret")
			}
		})
	}
	require.Equal(t, Proofs{Redirect: 17 * time.Second, Home: 24 * time.Hour, Skew: 30 * time.Second}, Proofs{}.resolved(7*time.Second))
	keys := [][]byte{bytes.Clone(oldKey)}
	p := keyed(keys...)
	keys[0][0]++
	require.Equal(t, oldKey, p.Keys[0], "the keys are its own")
}

// What a proof comes to at gateway A, incarnation 10.
func TestJudge(t *testing.T) {
	p := keyed(newKey, oldKey)
	was := keyed(oldKey)
	redirect := func(to ring.GatewayID, incarnation placement.Incarnation, hops int) []byte {
		return p.sent(noon, "m", to, incarnation, hops)
	}
	later := noon.Add
	past := later(p.Redirect + p.Skew + time.Millisecond)
	for _, row := range []struct {
		name  string
		proof []byte
		now   time.Time // zero: noon
		avoid []ring.GatewayID
		hops  int // claimed
		want  standing
		heeds int // hops believed
	}{
		{name: "none", hops: 1, want: unproved, heeds: 1},
		{name: "valid", proof: redirect("A", 10, 1), hops: 1, want: proved, heeds: 1},
		{name: "valid, by the key that goes", proof: was.sent(noon, "m", "A", 10, 1), hops: 1, want: proved, heeds: 1},
		{name: "valid, of an earlier incarnation", proof: redirect("A", 9, 1), hops: 1, want: proved, heeds: 1},
		{name: "of a home", proof: p.kept(noon, "m", "A", 10), want: proved},
		{name: "fewer hops are claimed than proved", proof: redirect("A", 10, 2), hops: 0, want: proved, heeds: 2},
		{name: "more hops are claimed than proved", proof: redirect("A", 10, 1), hops: 3, want: proved, heeds: 3},
		{name: "of a later incarnation", proof: redirect("A", 11, 1), hops: 1, want: unproved, heeds: 1},
		{name: "at the last moment", proof: redirect("A", 10, 1), now: past.Add(-time.Millisecond), hops: 1, want: proved, heeds: 1},
		{name: "run out", proof: redirect("A", 10, 1), now: past, hops: 1, want: unproved, heeds: 1},
		{name: "run out, by a key that is gone", proof: keyed(bytes.Repeat([]byte{3}, 32)).sent(noon, "m", "A", 10, 1), now: past, want: unproved},
		{name: "run out, of a later incarnation", proof: redirect("A", 11, 1), now: past, want: unproved},
		{name: "made by a clock that is ahead", proof: p.sent(later(time.Hour), "m", "A", 10, 1), want: proved, heeds: 1},
		{name: "for another gateway", proof: redirect("B", 1, 2), hops: 1, want: unproved, heeds: 2},
		{name: "for another gateway that could not be reached", proof: redirect("B", 1, 1), avoid: []ring.GatewayID{"C", "B"}, want: astray},
		{name: "for another gateway, run out", proof: redirect("B", 1, 1), now: past, avoid: []ring.GatewayID{"B"}, want: unproved},
		{name: "another gateway that was home", proof: p.kept(noon, "m", "B", 1), avoid: []ring.GatewayID{"B"}, want: unproved},
		{name: "for another member", proof: p.sent(noon, "n", "A", 10, 1), want: forged},
		{name: "by an unknown key", proof: keyed(bytes.Repeat([]byte{3}, 32)).sent(noon, "m", "A", 10, 1), want: forged},
		{name: "cut short", proof: redirect("A", 10, 1)[:40], want: forged},
		{name: "of no gateway", proof: p.sign("m", proof{expires: later(time.Hour)}), want: forged},
		{name: "of a later version", proof: append([]byte{2}, redirect("A", 10, 1)[1:]...), want: unproved},
		{name: "not one at all", proof: []byte("please"), want: unproved},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.now.IsZero() {
				row.now = noon
			}
			h := Hello{Member: "m", Stay: true, Hops: row.hops, Avoid: row.avoid, Proof: row.proof}
			got, hops := p.judge(row.now, "A", 10, h)
			require.Equal(t, row.want, got)
			require.Equal(t, row.heeds, hops)
			got, hops = Proofs{}.judge(row.now, "A", 10, h)
			require.Equal(t, unproved, got, "without keys nothing is looked at")
			require.Equal(t, row.hops, hops)
			h.Session = "s"
			got, _ = p.judge(row.now, "A", 10, h)
			require.Equal(t, unproved, got, "a session needs none")
		})
	}
}

// No change of a proof makes another one.
func TestProofIsOfOnePiece(t *testing.T) {
	p := keyed(oldKey)
	text := p.sent(noon, "m", "gw", 10, 1)
	for i := range text {
		for bit := range 8 {
			changed := bytes.Clone(text)
			changed[i] ^= 1 << bit
			got, _ := p.judge(noon, "gw", 10, Hello{Member: "m", Proof: changed, Avoid: []ring.GatewayID{"gv", "gx"}})
			require.Contains(t, []standing{forged, unproved}, got, "byte %d, bit %d", i, bit)
			_, known, genuine := p.read("m", changed)
			require.False(t, genuine)
			require.Equal(t, i > 0, known)
		}
		got, _ := p.judge(noon, "gw", 10, Hello{Member: "m", Proof: text[:i]})
		require.Contains(t, []standing{forged, unproved}, got, "the first %d bytes", i)
	}
	got, _ := p.judge(noon, "gw", 10, Hello{Member: "m", Proof: append(bytes.Clone(text), 0)})
	require.Equal(t, forged, got)
	// Where the member ends and the gateway begins is signed, too.
	got, _ = p.judge(noon, "w", 10, Hello{Member: "mg", Proof: text})
	require.Equal(t, forged, got)
}

func TestNoKeysNoProofs(t *testing.T) {
	p := Proofs{}.resolved(DefaultReserve)
	require.Nil(t, p.sent(noon, "m", "A", 1, 1))
	require.Nil(t, p.kept(noon, "m", "A", 1))
}

// FuzzProof shows any bytes as a proof: nothing fails, and what is taken for
// genuine is what would be signed, to the byte.
func FuzzProof(f *testing.F) {
	p := keyed(newKey, oldKey)
	f.Add([]byte(nil), "m", "A", 0)
	f.Add(p.sent(noon, "m", "A", 10, 1), "m", "A", 1)
	f.Add(p.kept(noon, "m", "A", 10), "m", "A", 0)
	f.Add(keyed(oldKey).sent(noon, "m", "B", 10, 300), "m", "A", 2)
	f.Add(p.sent(noon, "n", "A", 10, 1)[:50], "n", "A", 1)
	f.Fuzz(func(t *testing.T, text []byte, member, gateway string, hops int) {
		m, self := ring.MemberID(member), ring.GatewayID(gateway)
		got, heeded := p.judge(noon, self, 10, Hello{Member: m, Proof: text, Stay: true, Hops: hops, Avoid: []ring.GatewayID{"B"}})
		require.GreaterOrEqual(t, heeded, hops)
		said, known, genuine := p.read(m, text)
		if !genuine {
			require.Contains(t, []standing{unproved, forged}, got)
			return
		}
		require.True(t, known)
		require.NotEqual(t, forged, got)
		require.True(t, bytes.Equal(text, keyed(newKey).sign(m, said)) || bytes.Equal(text, keyed(oldKey).sign(m, said)))
		if got == proved {
			require.Equal(t, self, said.gateway)
			require.LessOrEqual(t, said.incarnation, placement.Incarnation(10))
		}
	})
}
