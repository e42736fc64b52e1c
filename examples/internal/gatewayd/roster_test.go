// SPDX-License-Identifier: Apache-2.0

package gatewayd_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// roster reads a gateway's /roster.
func (r *running) roster(query string) (page gatewayd.Roster) {
	r.t.Helper()
	code, body := r.get("/roster" + query)
	require.Equal(r.t, http.StatusOK, code, body)
	require.NoError(r.t, json.Unmarshal([]byte(body), &page), body)
	return page
}

// Two gateways that agree say so in one word, and can be compared if they do not.
func TestRosterPage(t *testing.T) {
	all := fleet(t, quick("a"), quick("b"))
	a, b := all[0], all[1]
	began := time.Now()
	for _, m := range []ring.MemberID{"edge-1", "edge-2"} {
		_, stream := plain(t).dial(a.where.Endpoint, redirect.Hello{Member: m, Generation: 7, CanRedirect: true, Stay: true})
		require.NotNil(t, stream)
	}
	require.Eventually(t, func() bool {
		return len(b.roster("").Records) == 2 && a.roster("").Digest == b.roster("").Digest && b.roster("").Records[0].Attached == 2
	}, patience, 10*time.Millisecond)

	at, copied := a.roster(""), b.roster("?members=1")
	require.Equal(t, ring.GatewayID("a"), at.Gateway)
	require.Equal(t, ring.GatewayID("b"), copied.Gateway)
	require.NotZero(t, at.Digest)
	require.NotZero(t, copied.Version)
	require.Empty(t, at.Records[0].Members, "nobody asked for them")
	require.WithinRange(t, copied.Since, began, time.Now())
	require.Equal(t, copied.Since.UnixNano(), copied.Records[0].ChangedAt.UnixNano())
	for i, record := range copied.Records {
		own := at.Records[i]
		require.Equal(t, own.Gateway, record.Gateway)
		require.Equal(t, own.Incarnation, record.Incarnation)
		require.Equal(t, own.Digest, record.Digest)
		require.Equal(t, record.Told, record.Sequence, "it is not behind")
	}
	require.ElementsMatch(t, []gatewayd.Member{{Member: "edge-1", Generation: 7}, {Member: "edge-2", Generation: 7}}, copied.Records[0].Members)
	require.Empty(t, copied.Records[1].Members)
}

func TestDigestText(t *testing.T) {
	text, err := gatewayd.Digest(0xabc).MarshalText()
	require.NoError(t, err)
	require.Equal(t, "0000000000000abc", string(text))
	var d gatewayd.Digest
	require.NoError(t, d.UnmarshalText(text))
	require.Equal(t, gatewayd.Digest(0xabc), d)
	for _, bad := range []string{"", "xyz", "0abc ", "11112222333344445"} {
		require.ErrorContains(t, d.UnmarshalText([]byte(bad)), "no digest", bad)
	}
}

func TestGossipTrafficIsCounted(t *testing.T) {
	all := fleet(t, quick("a"), quick("b"))
	for _, g := range all {
		_, body := g.get("/metrics")
		for _, name := range []string{
			`messages_total{direction="sent"}`, `messages_total{direction="received"}`,
			`stream_bytes_total{direction="sent"}`, `stream_bytes_total{direction="received"}`,
			`dials_total`, `packets_total`, `packet_bytes_total`,
		} {
			require.Contains(t, body, "\nevenring_example_gossip_"+name+" ")
		}
		require.NotContains(t, body, "\nevenring_example_gossip_messages_total{direction=\"received\"} 0\n")
	}
}
