// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/report"
)

var noon = time.Date(2025, 1, 2, 12, 0, 0, 500_000_000, time.UTC)

func read(r io.Reader) (all []report.Event, err error) {
	err = report.Read(r, func(e report.Event) { all = append(all, e) })
	return all, err
}

// The lines are what other programs parse: each kind's fields and names, and nothing of the others'.
func TestLines(t *testing.T) {
	for _, row := range []struct {
		event report.Event
		line  string
	}{
		{
			report.Event{Kind: report.Listening, Gateway: "gw-1", Listen: "127.0.0.1:4", Endpoint: "127.0.0.1:1", Gossip: "127.0.0.1:2", Ops: "127.0.0.1:3"},
			`{"event":"listening","at":"2025-01-02T12:00:00.5Z","gateway":"gw-1","listen":"127.0.0.1:4","endpoint":"127.0.0.1:1","gossip":"127.0.0.1:2","ops":"127.0.0.1:3"}`,
		},
		{
			report.Event{Kind: report.Ready, Gateway: "gw-1"},
			`{"event":"ready","at":"2025-01-02T12:00:00.5Z","gateway":"gw-1"}`,
		},
		{
			report.Event{Kind: report.Draining, Gateway: "gw-1"},
			`{"event":"draining","at":"2025-01-02T12:00:00.5Z","gateway":"gw-1"}`,
		},
		{
			report.Event{Kind: report.Drained, Gateway: "gw-1", Moved: 4, Closed: 2, Left: 1},
			`{"event":"drained","at":"2025-01-02T12:00:00.5Z","gateway":"gw-1","moved":4,"closed":2,"left":1}`,
		},
		{
			report.Event{Kind: report.Attached, Member: "edge-1", Gateway: "gw-1", GapMS: 12.5},
			`{"event":"attached","at":"2025-01-02T12:00:00.5Z","gateway":"gw-1","member":"edge-1","gap_ms":12.5}`,
		},
		{
			report.Event{Kind: report.Attached, Member: "edge-1", Gateway: "gw-1"},
			`{"event":"attached","at":"2025-01-02T12:00:00.5Z","gateway":"gw-1","member":"edge-1"}`,
		},
		{
			report.Event{Kind: report.Lost, Member: "edge-1"},
			`{"event":"lost","at":"2025-01-02T12:00:00.5Z","member":"edge-1"}`,
		},
		{
			report.Event{Kind: report.Verdict, Member: "edge-1", Outcome: "redirect", Reason: "least-loaded", Gateway: "gw-2"},
			`{"event":"verdict","at":"2025-01-02T12:00:00.5Z","gateway":"gw-2","member":"edge-1","outcome":"redirect","reason":"least-loaded"}`,
		},
		{
			report.Event{Kind: report.Session, Member: "edge-1", Session: "session-1", Gateway: "gw-2", AtHome: true},
			`{"event":"session","at":"2025-01-02T12:00:00.5Z","gateway":"gw-2","member":"edge-1","session":"session-1","at_home":true}`,
		},
		{
			report.Event{Kind: report.Session, Member: "edge-1", Session: "session-1"},
			`{"event":"session","at":"2025-01-02T12:00:00.5Z","member":"edge-1","session":"session-1"}`,
		},
	} {
		t.Run(row.line, func(t *testing.T) {
			row.event.At = noon
			var out bytes.Buffer
			report.NewWriter(&out).Write(row.event)
			require.Equal(t, row.line+"\n", out.String())
			all, err := read(&out)
			require.NoError(t, err)
			require.Equal(t, []report.Event{row.event}, all)
		})
	}
}

func TestWriteStampsWhatHasNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := report.NewWriter(&out)
		w.Write(report.Event{Kind: report.Ready})
		w.Write(report.Event{Kind: report.Ready, At: noon})
		all, err := read(&out)
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.True(t, all[0].At.Equal(time.Now()), "%v", all[0].At)
		require.True(t, all[1].At.Equal(noon), "%v", all[1].At)
	})
}

func TestNilWriterWritesNothing(*testing.T) {
	var w *report.Writer
	w.Write(report.Event{Kind: report.Ready})
}

// failing is a writer whose reader has gone. It counts what was tried.
type failing int

func (f *failing) Write([]byte) (int, error) {
	*f++
	return 0, errors.New("gone")
}

func TestWriteSurvivesAReaderThatHasGone(t *testing.T) {
	var gone failing
	w := report.NewWriter(&gone)
	w.Write(report.Event{Kind: report.Ready})
	require.EqualValues(t, 1, gone)
	w.Write(report.Event{Kind: report.Draining})
}

// Every event is one Write of one whole line, whoever writes at the same time.
func TestWriteConcurrently(t *testing.T) {
	const writers, each = 8, 50
	reader, writer := io.Pipe()
	w := report.NewWriter(writer)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for j := range each {
				w.Write(report.Event{Kind: report.Session, Member: fmt.Sprint(i), Session: fmt.Sprint(j)})
			}
		})
	}
	go func() {
		all.Wait()
		_ = writer.Close()
	}()
	next := make(map[string]int)
	require.NoError(t, report.Read(reader, func(e report.Event) {
		require.Equal(t, fmt.Sprint(next[e.Member]), e.Session, "of writer %s", e.Member)
		next[e.Member]++
	}))
	require.Len(t, next, writers)
	for member, n := range next {
		require.Equal(t, each, n, "of writer %s", member)
	}
}

func TestRead(t *testing.T) {
	const good = `{"event":"ready","gateway":"gw-1"}` + "\n"
	broken := errors.New("broken pipe")
	for _, row := range []struct {
		name   string
		in     io.Reader
		events int
		fault  string // empty: none
	}{
		{"nothing", strings.NewReader(""), 0, ""},
		{"a last line without its end", strings.NewReader(good + strings.TrimSuffix(good, "\n")), 2, ""},
		{"a byte at a time", iotest.OneByteReader(strings.NewReader(good + good)), 2, ""},
		{"fields and kinds of a later version", strings.NewReader(`{"event":"moved","colour":"red"}` + "\n" + good), 2, ""},
		{"no JSON", strings.NewReader(good + "panic: at the disco\n" + good), 1, `"panic: at the disco"`},
		{"an empty line", strings.NewReader(good + "\n" + good), 1, `report: ""`},
		{"another type", strings.NewReader(`{"event":"drained","moved":"four"}` + "\n"), 0, `"four`},
		{"a line without end", strings.NewReader(good + strings.Repeat("x", 1<<20)), 1, "too long"},
		{"a reader that fails", io.MultiReader(strings.NewReader(good), iotest.ErrReader(broken)), 1, broken.Error()},
	} {
		t.Run(row.name, func(t *testing.T) {
			all, err := read(row.in)
			require.Len(t, all, row.events)
			if row.fault == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.fault)
		})
	}
}

func ExampleWriter() {
	reader, writer := io.Pipe()
	go func() { // the child's side
		w := report.NewWriter(writer)
		w.Write(report.Event{Kind: report.Attached, Member: "edge-1", Gateway: "gw-2"})
		w.Write(report.Event{Kind: report.Attached, Member: "edge-1", Gateway: "gw-3", GapMS: 8})
		_ = writer.Close()
	}()
	err := report.Read(reader, func(e report.Event) { fmt.Println(e.Kind, e.Member, e.Gateway, e.GapMS) })
	fmt.Println(err)
	// Output:
	// attached edge-1 gw-2 0
	// attached edge-1 gw-3 8
	// <nil>
}
