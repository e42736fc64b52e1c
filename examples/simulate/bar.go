// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// long is from how many decisions on a run is long enough for a bar.
const long = 100_000

// bar shows how far a long run is, to a person at a terminal. nil shows nothing.
type bar struct{ *progressbar.ProgressBar }

// newBar returns the bar of a run of about so many decisions.
func newBar(to io.Writer, decisions int) *bar {
	f, ok := to.(*os.File)
	if !ok || decisions < long || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &bar{progressbar.NewOptions64(int64(decisions),
		progressbar.OptionSetWriter(f),
		progressbar.OptionSetDescription("decisions"),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

// at says how many decisions were made.
func (b *bar) at(decisions int) {
	if b != nil {
		_ = b.Set64(min(int64(decisions), b.GetMax64())) // a bar that cannot be shown is none
	}
}

// clear makes room for a line.
func (b *bar) clear() {
	if b != nil {
		_ = b.Clear() // see at
	}
}

// close takes the bar away.
func (b *bar) close() {
	if b != nil {
		_ = b.Finish() // see at
	}
}
