// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// terminal is a screen of characters that understands what a program like this
// one writes: lines that wrap, and the two sequences that erase the table.
// Lines that have scrolled away are kept, as a person could scroll back to
// them, and cannot be erased.
type terminal struct {
	width, height int

	mu       sync.Mutex
	lines    []string
	row      int // of the cursor, in lines
	sequence string
	strange  []string // sequences that it does not know
}

func (s *terminal) size() (width, height int) { return s.width, s.height }

func (s *terminal) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range string(text) {
		s.put(c)
	}
	return len(text), nil
}

func (s *terminal) put(c rune) {
	if len(s.lines) == 0 {
		s.lines = []string{""}
	}
	switch {
	case s.sequence != "":
		s.sequence += string(c)
		if c != '[' && (c < '0' || c > '9') {
			s.obey(s.sequence)
			s.sequence = ""
		}
	case c == '\x1b':
		s.sequence = "\x1b"
	case c == '\r':
	case c == '\n':
		s.down()
	default:
		if len(s.lines[s.row]) == s.width {
			s.down()
		}
		s.lines[s.row] += string(c)
	}
}

func (s *terminal) down() {
	s.row++
	if s.row == len(s.lines) {
		s.lines = append(s.lines, "")
	}
}

func (s *terminal) obey(sequence string) {
	var n int
	if _, err := fmt.Sscanf(sequence, "\x1b[%dA", &n); err == nil {
		s.row = max(s.row-n, len(s.lines)-s.height, 0)
		return
	}
	if sequence == "\x1b[J" {
		s.lines = append(s.lines[:s.row:s.row], "")
		return
	}
	s.strange = append(s.strange, sequence)
}

// shown returns everything that can be seen, scrolled back or not.
func (s *terminal) shown(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.strange)
	return strings.Join(s.lines, "\n")
}
