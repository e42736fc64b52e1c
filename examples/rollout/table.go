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
	live  bool
	board *board

	mu    sync.Mutex
	step  string
	began time.Time
	drawn int // lines of the table that are on the terminal now
	quit  chan struct{}
	done  sync.WaitGroup
}

// newScreen starts the screen on out.
func newScreen(out *os.File, b *board) *screen {
	s := &screen{out: out, live: term.IsTerminal(int(out.Fd())), board: b, quit: make(chan struct{})}
	if s.live {
		s.done.Go(s.refresh)
	}
	return s
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
	s.erase()
	fmt.Fprintln(s.out, line)
}

// close takes the table away.
func (s *screen) close() {
	close(s.quit)
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
}

func (s *screen) refresh() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
		}
		f, _ := s.board.read()
		s.mu.Lock()
		s.erase()
		table := draw(s.step, time.Since(s.began), f)
		fmt.Fprint(s.out, table)
		s.drawn = strings.Count(table, "\n")
		s.mu.Unlock()
	}
}

// erase is called under the lock.
func (s *screen) erase() {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

// barWidth is how many characters the longest bar has.
const barWidth = 40

// draw renders the table.
func draw(step string, since time.Duration, f figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %.1f s: %d of %d supervisors have a stream, %d sessions, %d moved, longest gap %.0f ms\n",
		step, since.Seconds(), f.supervisor-f.lost, f.supervisor, f.sessions, f.moved, f.gapMax)
	most := 1
	for _, n := range f.served {
		most = max(most, n)
	}
	for _, id := range slices.SortedFunc(maps.Keys(f.served), byNumber) {
		fmt.Fprintf(&b, "  %-6s %5d %s\n", id, f.served[id], strings.Repeat("#", (f.served[id]*barWidth+most-1)/most))
	}
	return b.String()
}
