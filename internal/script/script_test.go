// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlayWritesOutputAnew(t *testing.T) {
	got := play(t, "a.txt", "# why\nadd 1 2\n  old\n  words\n\nquiet\n", func(command string, args []string) string {
		if command == "quiet" {
			return ""
		}
		return fmt.Sprintln(command, args, "\n\nend")
	})
	require.Equal(t, "# why\nadd 1 2\n  add [1 2]\n\n  end\n\nquiet\n", string(got))
}

// ended is a test that a command ends.
type ended struct {
	testing.TB
	said []string
}

func (e *ended) Errorf(format string, args ...any) {
	e.said = append(e.said, fmt.Sprintf(format, args...))
}

func (e *ended) Fatal(args ...any) {
	e.said = append(e.said, fmt.Sprint(args...))
	runtime.Goexit()
}

func TestPlayNamesTheLine(t *testing.T) {
	e, over := &ended{}, make(chan struct{})
	go func() {
		defer close(over)
		play(e, "a.txt", "# why\n\ngood\n  output\nbad one\nnever\n", func(command string, _ []string) string {
			if command != "good" {
				e.Fatal("no such command: ", command)
			}
			return ""
		})
	}()
	<-over
	require.Equal(t, []string{"no such command: bad", "a.txt:5: bad one"}, e.said)
}
