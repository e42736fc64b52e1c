// SPDX-License-Identifier: Apache-2.0

// Package envflag lets the environment stand in for flags that are not given.
package envflag

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// Parse parses args, and takes every flag that they do not give from its
// variable, if that is set and not empty: with the prefix "EVENRING_", -log-level from
// EVENRING_LOG_LEVEL. The help names the variables. Help that is asked for goes
// to the output of fs, and is [flag.ErrHelp]; any other error goes nowhere but to the
// caller, and names the flag or the variable. Nothing but flags is allowed.
func Parse(fs *flag.FlagSet, prefix string, args []string, getenv func(string) string) error {
	fs.VisitAll(func(f *flag.Flag) { f.Usage += " [$" + variable(prefix, f) + "]" })
	output, usage := fs.Output(), fs.Usage
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	err := fs.Parse(args)
	fs.SetOutput(output)
	fs.Usage = usage
	switch {
	case errors.Is(err, flag.ErrHelp):
		help(fs)
		return err
	case err != nil:
		return err
	case fs.NArg() > 0:
		return fmt.Errorf("%q is no flag", fs.Arg(0))
	}
	return fallBack(fs, prefix, getenv)
}

func help(fs *flag.FlagSet) {
	if fs.Usage != nil {
		fs.Usage()
		return
	}
	fmt.Fprintf(fs.Output(), "Usage of %s:\n", fs.Name())
	fs.PrintDefaults()
}

func fallBack(fs *flag.FlagSet, prefix string, getenv func(string) string) error {
	given := make(map[string]bool)
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var errs []error
	fs.VisitAll(func(f *flag.Flag) {
		name := variable(prefix, f)
		value := getenv(name)
		if given[f.Name] || value == "" {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("invalid value %q for $%s (flag -%s): %w", value, name, f.Name, err))
		}
	})
	return errors.Join(errs...)
}

func variable(prefix string, f *flag.Flag) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}
