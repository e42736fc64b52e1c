// SPDX-License-Identifier: Apache-2.0

package child

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

// Process is one child: this program in another role.
type Process struct {
	Name string
	Cmd  *exec.Cmd
	Life io.Closer     // its standard input: it ends itself when that closes, so that no child outlives its parent
	Done chan struct{} // closed once it has ended and its report is read
	Err  error         // how it ended; read it after Done
}

// Start runs this program in a role. Its standard error goes to a file in
// dir; every line of its report goes to event.
func Start(dir, role, name string, args []string, event func(report.Event)) (*Process, error) {
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
	cmd.Env = append(os.Environ(), RoleVariable+"="+role)
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
	p := &Process{Name: name, Cmd: cmd, Life: life, Done: make(chan struct{})}
	go func() {
		defer close(p.Done)
		bad := report.Read(out, event)
		_, _ = io.Copy(io.Discard, out)
		p.Err = errors.Join(cmd.Wait(), bad)
	}()
	return p, nil
}

// Signal sends a signal; a process that has ended already is no error.
func (p *Process) Signal(s os.Signal) error {
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.Name, err)
	}
	return nil
}

// Kill ends it without a word and waits for that.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.Done
}

// Stop asks it to end, and returns how it did. After patience it is killed.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.Done:
	case <-time.After(patience):
		p.Kill()
		return fmt.Errorf("%s did not end within %v", p.Name, patience)
	}
	if p.Err != nil {
		return fmt.Errorf("%s: %w", p.Name, p.Err)
	}
	return nil
}

// DiedOf reports whether an error is the end of a process by one of these signals.
func DiedOf(err error, signals ...os.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && slices.Contains(signals, os.Signal(status.Signal()))
}

// Tail returns the last lines of every log in dir, for a run that went wrong.
func Tail(dir string, lines int) string {
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
