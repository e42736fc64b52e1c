// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// Main is a process with supervisors as a function: it parses args, serves until
// ctx ends, and returns the exit code: 0 after a clean stop, 1 if it could not run, 2 for a bad command line.
func Main(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	cfg, err := Parse(args, getenv, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "supervisor:", err)
		return 2
	}
	if err := Run(ctx, cfg); err != nil {
		fmt.Fprintln(stderr, "supervisor:", err)
		return 1
	}
	return 0
}
