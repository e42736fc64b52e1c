// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"unicode"

	"github.com/evenring/evenring/examples/internal/envflag"
	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/tlsflags"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/handoff"
)

// Parse reads a command line. A flag that is not given is taken from the
// environment: -listen from EVENRING_LISTEN, -tls-cert from EVENRING_TLS_CERT.
// Reports go to stdout, logs and help to stderr. The error joins every fault
// and names the flags; [flag.ErrHelp] says that help was asked for and given.
func Parse(args []string, getenv func(string) string, stdout, stderr io.Writer) (Config, error) {
	var (
		c      Config
		key    string
		told   bool
		level  slog.Level
		format string
	)
	host, _ := os.Hostname() // shown as the default
	fs := flag.NewFlagSet("gateway", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar((*string)(&c.ID), "id", host, "`name` of this gateway, one that no other has, and that outlives the process")
	fs.StringVar(&c.Listen, "listen", DefaultListen, "`address` for supervisors, sessions and other gateways; port 0: any")
	fs.StringVar(&c.Endpoint, "endpoint", "", "`address` at which this very gateway can be dialled; empty: that of -listen")
	fs.StringVar(&c.Ops, "ops", DefaultOps, "`address` of /healthz, /readyz, /readyz/callers, /metrics, /fleet, /explain?member=ID[&format=json] and, to be posted to, /settle; port 0: any")
	fs.StringVar(&c.Gossip, "gossip", DefaultGossip, "`address` for gossip between gateways, TCP and UDP; port 0: any")
	fs.StringVar(&c.Advertise, "gossip-advertise", "", "`address` at which other gateways reach -gossip; empty: the same, or the host's private address")
	fs.StringVar(&key, "gossip-key", "", "`secrets` that all gateways share, with commas between them, each 16, 24 or 32 bytes in hex or base64; or a file with them, which may be one a line; the first encrypts, all are accepted; empty: anybody may join")
	fs.Func("join", "gossip `addresses`, with commas between them, at which other gateways may be found; a name stands for all its addresses", func(list string) error {
		c.Join = nil
		for seed := range strings.SplitSeq(list, ",") {
			c.Join = append(c.Join, strings.TrimSpace(seed))
		}
		return nil
	})
	c.kubeFlags(fs)
	proofKey := c.proofFlags(fs)
	fs.DurationVar(&c.PeerWait, "peer-wait", DefaultPeerWait, "how long to wait for the loads of the other gateways before being ready; 0: the default")
	fs.DurationVar(&c.DelistGrace, "delist-grace", DefaultDelistGrace, "how long discovery may fail to list this gateway, which it had, before it hands over; 0: the default")
	fs.DurationVar(&c.Propagation, "propagation", handoff.DefaultPropagation, "of a drain: time for its announcement to spread; 0: the default")
	fs.DurationVar(&c.Window, "window", handoff.DefaultWindow, "of a drain: time over which supervisors are told to move; 0: the default")
	fs.DurationVar(&c.Confirm, "confirm", handoff.DefaultConfirm, "of a drain: time for the last ones to arrive elsewhere; 0: the default")
	fs.DurationVar(&c.KillAfter, "kill-after", handoff.DefaultKillAfter, "of a drain: when the process will be killed, as terminationGracePeriodSeconds; 0: the default")
	transport := wire.Register(fs)
	secure := tlsflags.Register(fs)
	fs.BoolVar(&told, "report", false, "write what happens to standard output, one JSON object a line")
	fs.TextVar(&level, "log-level", slog.LevelInfo, "least `level` that is logged: debug, info, warn or error")
	fs.StringVar(&format, "log-format", "text", "`format` of the log: text or json")
	if err := envflag.Parse(fs, "EVENRING_", args, getenv); err != nil {
		return Config{}, err
	}

	var errs []error
	c.TLS, c.Transport = *secure, *transport
	if told {
		c.Report = report.NewWriter(stdout)
	}
	var err error
	if c.Log, err = logger(format, level, stderr); err != nil {
		errs = append(errs, err)
	}
	if keys, err := secrets(key, "16, 24 or 32", func(n int) bool { return n == 16 || n == 24 || n == 32 }); err != nil {
		errs = append(errs, fmt.Errorf("-gossip-key: %w", err))
	} else if len(keys) > 0 {
		c.GossipKey, c.GossipAccept = keys[0], keys[1:]
	}
	if err := c.proofKeys(*proofKey); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(append(errs, c.Validate())...); err != nil {
		return Config{}, err
	}
	return c, nil
}

func logger(format string, level slog.Level, to io.Writer) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(to, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, options)), nil
	default:
		return nil, fmt.Errorf("-log-format is %q; it can be text or json", format)
	}
}

// secrets reads keys, of lengths that fit: hex or base64 with commas or white
// space between them, or the name of a file that holds such a list. Its errors
// do not repeat them.
func secrets(text, lengths string, fit func(int) bool) ([][]byte, error) {
	keys, ok := decodedAll(text, fit)
	if ok {
		return keys, nil
	}
	content, err := os.ReadFile(text)
	if err != nil {
		return nil, fmt.Errorf("it is neither %s bytes in hex or base64, several of these with commas between them, nor a file that can be read", lengths)
	}
	if keys, ok = decodedAll(string(content), fit); !ok || len(keys) == 0 {
		return nil, fmt.Errorf("its file does not hold %s bytes in hex or base64, or several of these", lengths)
	}
	return keys, nil
}

func decodedAll(text string, fit func(int) bool) (keys [][]byte, ok bool) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		key, ok := decoded(word, fit)
		if !ok {
			return nil, false
		}
		keys = append(keys, key)
	}
	return keys, true
}

func decoded(text string, fit func(int) bool) ([]byte, bool) {
	for _, decode := range []func(string) ([]byte, error){hex.DecodeString, base64.StdEncoding.DecodeString} {
		if key, err := decode(text); err == nil && fit(len(key)) {
			return key, true
		}
	}
	return nil, false
}
