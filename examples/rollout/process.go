// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/evenring/evenring/examples/internal/report"
)

// roleVariable tells a process of this program that it is a gateway or a
// supervisor, and not the one that runs the show.
const roleVariable = "EVENRING_ROLLOUT_ROLE"

// process is one child: this program in another role.
type process struct {
	name string
	cmd  *exec.Cmd
	life io.Closer     // its standard input: it ends itself when that closes, so that no child outlives its parent
	done chan struct{} // closed once it has ended and its report is read
	err  error         // how it ended; read it after done
}

// start runs this program in a role. Its standard error goes to a file in
// dir; every line of its report goes to event.
func start(dir, role, name string, args []string, event func(report.Event)) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = log
	life, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, life: life, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		bad := report.Read(out, event)
		_, _ = io.Copy(io.Discard, out)
		p.err = errors.Join(cmd.Wait(), bad)
	}()
	return p, nil
}

// signal sends a signal; a process that has ended already is no error.
func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// kill ends it without a word and waits for that.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks it to end, and returns how it did. After patience it is killed.
func (p *process) stop(patience time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("%s did not end within %v", p.name, patience)
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w", p.name, p.err)
	}
	return nil
}

// diedOf reports whether an error is the end of a process by one of these signals.
func diedOf(err error, signals ...os.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && slices.Contains(signals, os.Signal(status.Signal()))
}

// tail returns the last lines of every log in dir, for a run that went wrong.
func tail(dir string, lines int) string {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		all := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(f), strings.Join(all[max(0, len(all)-lines):], "\n"))
	}
	return b.String()
}
