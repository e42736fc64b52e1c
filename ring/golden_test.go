// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenMember is a line of members.json.
type goldenMember struct {
	Member MemberID `json:"member"`
	Hash   string   `json:"hash"`
}

// goldenRing is one of the other files.
type goldenRing struct {
	Format       int          `json:"format"`
	Slots        int          `json:"slots"`
	Load         float64      `json:"load"`
	VirtualNodes int          `json:"virtual_nodes"`
	Gateways     []GatewayID  `json:"gateways"`
	Fingerprint  string       `json:"fingerprint"`
	Shares       []int        `json:"shares"`
	Owners       []GatewayID  `json:"owners"`
	Walks        []goldenWalk `json:"walks"`
}

type goldenWalk struct {
	Member    MemberID    `json:"member"`
	Slot      int         `json:"slot"`
	Clockwise []GatewayID `json:"clockwise"`
}

func goldenMembers() []MemberID {
	ids := members(100)
	for i := range 40 {
		sum := xxhash.Sum64String(fmt.Sprint(i))
		ids = append(ids, MemberID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x",
			uint32(sum), uint16(sum>>8), sum>>16&0xfff, sum>>28&0xfff, sum>>16)))
	}
	for i := range 10 {
		ids = append(ids, MemberID(fmt.Sprintf("tenant-%d/cluster/build-%d", i%3, i)))
	}
	ids = append(ids, "a", "0", " ", "\n", "\x00", "supervisor", "supervisor-01", "SUPERVISOR-1")
	for _, word := range []string{"Überwacher", "надзиратель", "監督者", "المشرف", "επόπτης", "👩‍🚀", "é", "e\u0301"} {
		ids = append(ids, MemberID(word), MemberID(word+"-1"))
	}
	for i := range 20 { // around the lengths at which xxhash changes its way
		ids = append(ids, MemberID(strings.Repeat("x", i+1)))
	}
	for _, n := range []int{31, 32, 33, 63, 64, 65} {
		ids = append(ids, MemberID(strings.Repeat("long-", n)[:n]), MemberID(strings.Repeat("長", n)))
	}
	return append(ids, MemberID(strings.Repeat("0123456789abcdef", 64)), MemberID(strings.Repeat("é", 1000)))
}

func TestGolden(t *testing.T) {
	keys := goldenMembers()
	var hashed []goldenMember
	for _, m := range keys {
		hashed = append(hashed, goldenMember{m, fmt.Sprintf("%016x", xxhash.Sum64String(string(m)))})
	}
	golden(t, "members", hashed)

	for _, tc := range []struct {
		name     string
		cfg      Config
		gateways []GatewayID
	}{
		{"none", Config{}, []GatewayID{}},
		{"one", Config{}, statefulSet(1)},
		{"two", Config{}, statefulSet(2)},
		{"three", Config{}, []GatewayID{"gateway-a", "gateway-b", "gateway-c"}},
		{"statefulset-12", Config{}, statefulSet(12)},
		{"deployment-5", Config{}, []GatewayID{
			"gateway-6f7c9d8b5-2xkqp", "gateway-6f7c9d8b5-9vbnm", "gateway-6f7c9d8b5-hj4wz", "gateway-6f7c9d8b5-q8rtl", "gateway-6f7c9d8b5-zz7cs"}},
		{"unicode", Config{}, []GatewayID{"Tor", "tür", "ворота", "門", "🚪", "a/b", "a/", "10.0.0.1:7443", GatewayID(strings.Repeat("long-", 60))}},
		{"statefulset-128", Config{}, statefulSet(128)},
		{"statefulset-600", Config{}, statefulSet(600)},
		{"slots-271-load-1.25", Config{Slots: 271, Load: 1.25}, statefulSet(5)},
		{"slots-65521", Config{Slots: MaxSlots, Load: 1.5}, statefulSet(7)},
		{"more-gateways-than-slots", Config{Slots: 7}, statefulSet(20)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRing(t, tc.cfg, tc.gateways...)
			want := goldenRing{
				Format: Format, Slots: r.Slots(), Load: r.cfg.Load,
				Gateways: []GatewayID{}, Shares: []int{}, Owners: []GatewayID{},
				Fingerprint: fmt.Sprintf("%016x", r.Fingerprint()),
			}
			for _, id := range r.Gateways() {
				want.Gateways = append(want.Gateways, id)
				want.Shares = append(want.Shares, r.Share(id))
			}
			if sharing := min(r.Len(), r.Slots()); sharing > 0 {
				want.VirtualNodes = virtualNodes(sharing)
			}
			for _, m := range keys {
				if owner, ok := r.Owner(m); ok {
					want.Owners = append(want.Owners, owner)
				}
			}
			for _, m := range keys[:4] {
				order := append([]GatewayID{}, slices.Collect(r.Clockwise(m))...)
				want.Walks = append(want.Walks, goldenWalk{m, r.Slot(m), order})
			}
			golden(t, tc.name, want)
		})
	}
}

// golden compares v with a file, byte by byte, or rewrites the file.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	require.NoError(t, enc.Encode(v))

	path := filepath.Join("testdata", "golden", name+".json")
	if *update {
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "the layout has changed: raise Format, then run with -update")
}
