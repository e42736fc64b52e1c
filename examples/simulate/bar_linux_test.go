// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// onTerminal runs the program with a terminal for standard error, and returns
// what that was given.
func onTerminal(t *testing.T, args string) string {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer person.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	require.NoError(t, unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 80, Row: 24}))
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	line, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	done := make(chan int, 1)
	var out bytes.Buffer
	go func() {
		done <- run(strings.Fields(args), &out, line)
		_ = line.Close()
	}()
	shown, err := io.ReadAll(person)
	require.ErrorIs(t, err, syscall.EIO) // as Linux has it once nobody is left
	require.Zero(t, <-done, "%s", shown)
	return string(shown)
}

func TestBarOnATerminal(t *testing.T) {
	shown := onTerminal(t, "-plan burst -gateways 3 -supervisors 60000")
	require.Contains(t, shown, "decisions")
	require.Contains(t, shown, "120000")
	require.True(t, strings.HasSuffix(strings.TrimRight(shown, " "), "\r"), "the bar is taken away: %q", shown)
}

// A short run has none, and with -json the terminal has what is for people.
func TestNoBar(t *testing.T) {
	require.Empty(t, onTerminal(t, "-plan burst -gateways 3 -supervisors 100"))
	shown := onTerminal(t, "-plan burst -gateways 3 -supervisors 60000 -json")
	require.Contains(t, shown, "Every promise is kept.\r\n")

	var out, people bytes.Buffer
	require.Zero(t, run(strings.Fields("-plan burst -gateways 3 -supervisors 60000"), &out, &people))
	require.Empty(t, people.String(), "no terminal, no bar")
}
