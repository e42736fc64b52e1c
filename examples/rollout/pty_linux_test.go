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

// openPTY returns both ends of a terminal: who sits at it, and who runs in it.
func openPTY(t *testing.T, width, height uint16) (person, line *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	line, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = line.Close() })
	return person, line
}

// onTerminal runs the program on a terminal of 80 columns and calls seen with
// all that has been written so far, whenever there is more. It returns that, the
// terminal as it is at the end, and the exit status.
func onTerminal(t *testing.T, seen func(person *os.File, raw string), args ...string) (raw string, term *terminal, status int) {
	t.Helper()
	term = &terminal{width: 80, height: 24}
	person, line := openPTY(t, 80, 24)
	p := newProgram(t, args...)
	p.Stdin, p.Stdout, p.Stderr = line, line, line
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.start(t)
	require.NoError(t, line.Close())
	var all bytes.Buffer
	part := make([]byte, 4096)
	for {
		n, err := person.Read(part)
		_, _ = io.MultiWriter(&all, term).Write(part[:n])
		seen(person, all.String())
		if err != nil {
			require.ErrorIs(t, err, syscall.EIO) // as Linux has it once nobody is left
			break
		}
	}
	return all.String(), term, p.end(t)
}

func TestProgramOnATerminal(t *testing.T) {
	raw, term, status := onTerminal(t, func(*os.File, string) {}, "-gateways", "2", "-supervisors", "4", "-steps", "restart-supervisors", "-seed", "7")
	shown := term.shown(t)
	require.Zero(t, status, shown)
	require.Regexp(t, `start, \d+\.\d s\r\n`, raw)
	require.Contains(t, raw, "  4 of 4 supervisors have a stream, 8 sessions, 0 moved, longest gap 0 ms\r\n"+
		"  gw-1       2 "+bar+"\r\n"+
		"  gw-2       2 "+bar+"\r\n")
	require.Regexp(t, `^2 gateways, 4 supervisors with 2 sessions each, the Service at 127\.0\.0\.1:\d+,? ?\n? ?seed 7
ok     start .*
?.* gw-1:2 gw-2:2
ok     restart-supervisors .*
?.* gw-1:2 gw-2:2
Every step held\.
$`, shown)
}

// Control-C reaches every process of the terminal, and none of them is blamed for its end.
func TestProgramInterruptedOnATerminal(t *testing.T) {
	told := false
	_, term, status := onTerminal(t, func(person *os.File, raw string) {
		if !told && strings.Contains(raw, "\nrolling, ") {
			told = true
			_, err := person.WriteString("\x03")
			require.NoError(t, err)
		}
	}, "-gateways", "2", "-supervisors", "2", "-steps", "rolling,crash")
	shown := strings.ReplaceAll(term.shown(t), "\n", "")
	require.Equal(t, 1, status, shown)
	require.Contains(t, shown, "FAILED rolling")
	require.Contains(t, shown, "interrupt signal received")
	require.Contains(t, shown, "2 of 3 steps did not hold.Logs are in ")
	require.NotContains(t, shown, "not everything ended well")
	require.NotContains(t, shown, "supervisors have a stream", "the table is gone")
}
