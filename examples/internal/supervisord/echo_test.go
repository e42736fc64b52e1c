// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/report"
)

// Of a request that is long, or no text, only a start is told; the answer is all of it.
func TestEchoReportsHowARequestBegins(t *testing.T) {
	seen := new(events)
	m := &member{id: "edge-1", report: report.NewWriter(seen)}
	long := append([]byte("\xff"), bytes.Repeat([]byte("x"), 1000)...)
	answer, err := m.echo(t.Context(), long)
	require.NoError(t, err)
	require.Equal(t, long, answer)
	_, err = m.echo(t.Context(), nil)
	require.NoError(t, err)
	executed := seen.of("edge-1", report.Executed)
	require.Len(t, executed, 2)
	require.Equal(t, "?"+string(long[1:told]), executed[0].Request)
	require.Empty(t, executed[1].Request)
}
