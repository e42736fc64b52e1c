// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/redirect"
)

func TestInbox(t *testing.T) {
	b := newInbox()
	b.departed(redirect.Departure{Member: "a", Clean: true})
	b.departed(redirect.Departure{Member: "a", To: "C"})
	b.put(Ordered{Member: "b"})
	<-b.ready
	require.Equal(t, []Event{Closed{"a"}, Moved{"a", "C"}, Ordered{Member: "b"}}, b.take())
	require.Empty(t, b.take())

	b.put(Closed{"c"})
	b.close()
	b.put(Closed{"d"}) // the gateway goes on telling after the drain
	require.Empty(t, b.take())
}
