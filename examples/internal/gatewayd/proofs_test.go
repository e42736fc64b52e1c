// SPDX-License-Identifier: Apache-2.0

package gatewayd_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

func TestProofKeys(t *testing.T) {
	first, second := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 48)
	asHex, asBase64 := hex.EncodeToString(first), base64.StdEncoding.EncodeToString(second)
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte(asHex+"\n"+asBase64+"\n"), 0o600))
	for name, row := range map[string]struct {
		text string
		want [][]byte
	}{
		"one": {asHex, [][]byte{first}}, "two": {asHex + "," + asBase64, [][]byte{first, second}}, "a file": {file, [][]byte{first, second}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse("-proof-key", row.text, "-proof-required")
			require.NoError(t, err)
			require.Equal(t, row.want, c.ProofKeys)
			require.True(t, c.ProofRequired)
		})
	}
	c, err := gatewayd.Parse(nil, func(name string) string {
		return map[string]string{"EVENRING_PROOF_KEY": asHex, "EVENRING_PROOF_REQUIRED": "true"}[name]
	}, io.Discard, io.Discard)
	require.NoError(t, err)
	require.Equal(t, [][]byte{first}, c.ProofKeys)
	require.True(t, c.ProofRequired)

	third := hex.EncodeToString(bytes.Repeat([]byte{3}, 32))
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"short":            {[]string{"-proof-key", asHex[2:]}, "at least 32 bytes"},
		"no file":          {[]string{"-proof-key", "/secret/nowhere"}, "at least 32 bytes"},
		"three":            {[]string{"-proof-key", asHex + "," + asBase64 + "," + third}, "Keys has 3 keys"},
		"twice":            {[]string{"-proof-key", asHex + "," + asHex}, "Keys[1] is Keys[0] again"},
		"required of none": {[]string{"-proof-required"}, "Required needs Keys"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(row.args...)
			require.ErrorContains(t, err, "-proof-key")
			require.ErrorContains(t, err, row.want)
			require.NotContains(t, err.Error(), asHex[2:])
			require.NotContains(t, err.Error(), "/secret")
		})
	}
}

// Two gateway processes that require proofs: who shows the one that it was given
// stays, who claims a stay is placed, and who shows another's is refused.
func TestProofs(t *testing.T) {
	configs := []gatewayd.Config{quick("a"), quick("b")}
	for i := range configs {
		configs[i].ProofKeys, configs[i].ProofRequired = [][]byte{bytes.Repeat([]byte{1}, 32)}, true
	}
	gateways := fleet(t, configs...)
	a, d := gateways[0], plain(t)
	sent := 0
	for _, member := range []ring.MemberID{"m1", "m2", "m3", "m4"} {
		h := redirect.Hello{Member: member, CanRedirect: true}
		verdict, _ := d.dial(a.where.Endpoint, h)
		if verdict.Outcome == redirect.Redirect {
			sent++
			h.Stay, h.Hops, h.Proof = true, 1, verdict.Proof
			stolen := h
			stolen.Member = "thief"
			refused, _ := d.dial(verdict.Endpoint, stolen)
			require.Equal(t, redirect.Refuse, refused.Outcome)
			require.Equal(t, redirect.ReasonBadProof, refused.Reason)
			verdict, _ = d.dial(verdict.Endpoint, h)
			require.Equal(t, redirect.ReasonStay, verdict.Reason)
		}
		require.Equal(t, redirect.Accept, verdict.Outcome)
		require.NotEmpty(t, verdict.Proof)
	}
	require.Equal(t, 2, sent)
	verdict, _ := d.dial(a.where.Endpoint, redirect.Hello{Member: "m5", Stay: true, CanRedirect: true})
	require.NotEqual(t, redirect.ReasonStay, verdict.Reason)
	gateways[1].shows("/metrics", "\nevenring_verdicts_total{outcome=\"refuse\",reason=\"bad-proof\"} 2\n")
}
