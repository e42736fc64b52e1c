// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/evenring/evenring/examples/internal/envflag"
	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/tlsflags"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/ring"
)

// envPrefix and a flag's name, in capitals, make the variable that stands in for the flag.
const envPrefix = "EVENRING_"

// Parse reads a command line. A flag that is not given is taken from the
// environment: -service from EVENRING_SERVICE, -log-level from
// EVENRING_LOG_LEVEL. Reports go to stdout, logs and usage to stderr. An
// error names its flag or variable; [flag.ErrHelp] says that help was asked for
// and given.
func Parse(args []string, getenv func(string) string, stdout, stderr io.Writer) (Config, error) {
	var (
		cfg     Config
		members names
		batch   batch
		allowed targets
		told    bool
		level   slog.Level
	)
	flags := flag.NewFlagSet("supervisor", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&cfg.Service, "service", "127.0.0.1:7000", "`address` in front of all gateways")
	flags.Var(&members, "member", "host the supervisor of this `name`; may be repeated, or a list with commas")
	flags.StringVar(&batch.prefix, "prefix", "", "host supervisors named by this `text` and a number, beside those of -member")
	flags.IntVar(&batch.first, "first", 1, "first `number` after -prefix")
	flags.IntVar(&batch.count, "count", 1, "how many `supervisors` have -prefix")
	flags.Var(&allowed, "allow-target", "gateways may send to this `host` (a name, .suffix for all below it, an address, or a network such as 10.1.0.0/16), or at this :port; may be repeated, or a list with commas; none: to any")
	flags.IntVar(&cfg.Sessions, "sessions", 2, "child `sessions` of each supervisor")
	flags.StringVar(&cfg.Ops, "ops", "", "`address` to serve /healthz, /readyz and /metrics on; empty: none")
	flags.BoolVar(&told, "report", false, "write what happens to standard output, one JSON object a line")
	flags.TextVar(&level, "log-level", slog.LevelInfo, "least `level` that is logged: debug, info, warn or error")
	transport := wire.Register(flags)
	secure := tlsflags.Register(flags)
	if err := envflag.Parse(flags, envPrefix, args, getenv); err != nil {
		return Config{}, err
	}
	more, err := batch.members()
	if err != nil {
		return Config{}, err
	}
	cfg.Members = slices.Concat(members, more)
	cfg.Targets, cfg.Transport = allowed.policy, *transport
	if cfg.TLS, err = secure.Client(); err != nil {
		return Config{}, err
	}
	if told {
		cfg.Report = report.NewWriter(stdout)
	}
	cfg.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	if err := cfg.Validate(); err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// names is a flag that may be repeated.
type names []ring.MemberID

func (n *names) String() string {
	var all []string
	for _, m := range *n {
		all = append(all, string(m))
	}
	return strings.Join(all, ",")
}

func (n *names) Set(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		*n = append(*n, ring.MemberID(strings.TrimSpace(name)))
	}
	return nil
}

// batch is supervisors named by a prefix and a number.
type batch struct {
	prefix       string
	first, count int
}

func (b batch) members() ([]ring.MemberID, error) {
	if b.prefix == "" {
		return nil, nil
	}
	var errs []error
	if b.first < 0 {
		errs = append(errs, fmt.Errorf("flag -first is %d; it cannot be below 0", b.first))
	}
	if b.count < 1 {
		errs = append(errs, fmt.Errorf("flag -count is %d; it cannot be below 1", b.count))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := make([]ring.MemberID, b.count)
	for i := range all {
		all[i] = ring.MemberID(fmt.Sprint(b.prefix, b.first+i))
	}
	return all, nil
}
