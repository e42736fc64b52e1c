// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// screen shows a person what goes on: a live table on a terminal, a line a
// step elsewhere.
type screen struct {
	out   io.Writer
	size  func() (width, height int) // of the terminal; nil: out is none
	board *board

	mu    sync.Mutex
	step  string
	began time.Time
	drawn int // lines of the table that are on the terminal now
	quit  chan struct{}
	done  sync.WaitGroup
}

// newScreen starts the screen on out.
func newScreen(out io.Writer, b *board) *screen {
	s := &screen{out: out, board: b, quit: make(chan struct{})}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.live(func() (width, height int) {
			width, height, err := term.GetSize(int(f.Fd()))
			if err != nil || width == 0 || height == 0 {
				return 80, 24
			}
			return width, height
		})
	}
	return s
}

// live makes it a terminal of that size, and starts the table on it.
func (s *screen) live(size func() (width, height int)) {
	s.size = size
	s.done.Go(s.refresh)
}

// begin says that a step begins.
func (s *screen) begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step, s.began = name, time.Now()
}

// say prints a line for good, above the table.
func (s *screen) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.out, s.erase(), line, "\n")
}

// close takes the table away.
func (s *screen) close() {
	close(s.quit)
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.out, s.erase())
}

func (s *screen) refresh() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
			s.redraw()
		}
	}
}

// redraw replaces the table in one write, so that it does not flicker.
func (s *screen) redraw() {
	f := s.board.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.step == "" {
		return
	}
	table := fit(draw(s.step, time.Since(s.began), f), s.size)
	fmt.Fprint(s.out, s.erase(), table)
	s.drawn = strings.Count(table, "\n")
}

// erase returns what takes the table off the terminal. It is called under the lock.
func (s *screen) erase() string {
	if s.drawn == 0 {
		return ""
	}
	up := fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn)
	s.drawn = 0
	return up
}

// fit cuts a table to a terminal: a line that wraps, or one that scrolls away, could not be erased.
func fit(table string, size func() (width, height int)) string {
	width, height := size()
	var b strings.Builder
	for line := range strings.Lines(table) {
		if height--; height == 0 { // the last line is the cursor's
			break
		}
		line = strings.TrimSuffix(line, "\n")
		b.WriteString(line[:min(len(line), width-1)] + "\n")
	}
	return b.String()
}

// barWidth is how many characters the longest bar has.
const barWidth = 40

// draw renders the table. It is ASCII.
func draw(step string, since time.Duration, f figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %.1f s\n", step, since.Seconds())
	fmt.Fprintf(&b, "  %d of %d supervisors have a stream, %d sessions, %d moved, longest gap %.0f ms\n",
		f.supervisor-f.lost, f.supervisor, f.sessions, f.moved, f.gapMax)
	most := 1
	for _, n := range f.served {
		most = max(most, n)
	}
	for _, id := range slices.SortedFunc(maps.Keys(f.served), byNumber) {
		fmt.Fprintf(&b, "  %-6s %5d %s\n", id, f.served[id], strings.Repeat("#", (f.served[id]*barWidth+most-1)/most))
	}
	return b.String()
}
