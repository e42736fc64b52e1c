// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"bytes"
	"context"
	"log/slog"
)

// logWriter takes memberlist's log lines, such as "[WARN] memberlist: text".
type logWriter struct{ logger *slog.Logger }

func (w logWriter) Write(line []byte) (int, error) {
	text, level := bytes.TrimSpace(line), slog.LevelDebug
	if tag, rest, ok := bytes.Cut(text, []byte("] ")); ok && bytes.HasPrefix(tag, []byte("[")) {
		switch string(tag) {
		case "[WARN", "[ERR", "[ERROR":
			level = slog.LevelWarn
		}
		text = bytes.TrimPrefix(rest, []byte("memberlist: "))
	}
	w.logger.Log(context.Background(), level, "memberlist", "said", string(text))
	return len(line), nil
}
