// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
)

// Whatever client-go finds important is a detail here, and what it finds
// detailed is nothing.
func TestAside(t *testing.T) {
	say := func(level slog.Level) string {
		var text bytes.Buffer
		handler := slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level})
		logger := logr.FromSlogHandler(aside{handler}).WithValues("with", 1).WithName("name")
		logger.Error(errors.New("fault"), "loud")
		logger.V(4).Info("quiet")
		logger.V(8).Info("body")
		return text.String()
	}
	require.Empty(t, say(slog.LevelInfo))
	text := say(slog.LevelDebug)
	require.Contains(t, text, `level=DEBUG msg=loud with=1 logger=name err=fault`)
	require.Contains(t, text, "level=DEBUG msg=quiet")
	require.NotContains(t, text, "body")
	require.NotContains(t, text, "level=ERROR")
}
