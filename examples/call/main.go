// SPDX-License-Identifier: Apache-2.0

// Command call makes one request of a supervisor, or of a child session of one,
// through any gateway, and prints the answer:
//
//	call -gateway 127.0.0.1:7000 -member edge-1 hello
//	call -gateway 127.0.0.1:7001 -member edge-1 -session session-1 hello
//
// It exits with 1 if there is no answer, and says why. Over gRPC: NotFound, no gateway has
// the supervisor; Unavailable with a text of package forward, one may have it, and the request was not
// executed; Unknown, it may have been executed. With -transport websocket the texts are those alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/evenring/evenring/examples/internal/tlsflags"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run makes the call that args describe and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("call", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: call -member ID [flags] TEXT...")
		fs.PrintDefaults()
	}
	gateway := fs.String("gateway", "127.0.0.1:7000", "`address` of any gateway")
	var request redirect.Request
	fs.StringVar((*string)(&request.Member), "member", "", "the supervisor's member `ID`")
	fs.StringVar((*string)(&request.Session), "session", "", "the `name` of a child session of it; empty: the supervisor itself")
	fs.BoolVar(&request.Idempotent, "idempotent", false, "executing the request twice does no harm, so it may be tried again")
	timeout := fs.Duration("timeout", 10*time.Second, "how long to wait for the answer")
	transport := wire.Register(fs)
	secure := tlsflags.Register(fs)
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case request.Member == "":
		fmt.Fprintln(stderr, "call: -member is empty")
		return 2
	case *timeout <= 0:
		fmt.Fprintf(stderr, "call: -timeout is %v; it must be above 0\n", *timeout)
		return 2
	}
	request.Payload = []byte(strings.Join(fs.Args(), " "))
	answer, err := call(ctx, *transport, *gateway, *secure, request, *timeout)
	if err != nil {
		fmt.Fprintln(stderr, "call:", err)
		return 1
	}
	fmt.Fprintf(stdout, "%s\n", answer)
	return 0
}

func call(ctx context.Context, transport wire.Kind, gateway string, secure tlsflags.Flags, request redirect.Request, timeout time.Duration) ([]byte, error) {
	cfg, err := secure.Client()
	if err != nil {
		return nil, err
	}
	caller := wire.NewCaller(wire.CallerConfig{Kind: transport, Addr: gateway, TLS: cfg})
	defer func() { _ = caller.Close() }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return caller.Call(ctx, request)
}
