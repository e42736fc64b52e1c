// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"
)

// Whatever keys follow each other, the ring holds them, encrypts with the
// first, and never moves keys that somebody is reading.
func TestKeyring(t *testing.T) {
	t.Parallel()
	key := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 16) }
	ring, err := memberlist.NewKeyring(nil, key(0))
	require.NoError(t, err)
	k := keys{ring: ring}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				for _, held := range ring.GetKeys() {
					if len(held) != 16 {
						t.Errorf("a key is broken: %v", held)
						return
					}
				}
			}
		}
	})
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, seed))
	for range 2000 {
		var want [][]byte
		for _, i := range rng.Perm(5)[:1+rng.IntN(4)] {
			want = append(want, key(i))
		}
		require.NoError(t, k.set(want))
		require.Equal(t, want[0], ring.GetPrimaryKey())
		require.ElementsMatch(t, want, ring.GetKeys())
	}
	close(stop)
	reading.Wait()
}
