// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// Config says whom a process hosts and where they dial.
type Config struct {
	Service   string             // the address in front of all gateways, host:port. Required.
	Members   []ring.MemberID    // the supervisors; at least one, each once
	Sessions  int                // child sessions of each supervisor, named session-1 and on; 0: none
	Ops       string             // address of /healthz, /readyz and /metrics; port 0: any; empty: not served
	Transport wire.Kind          // what every stream goes over; zero: gRPC
	TLS       *tls.Config        // secures every stream; nil: plaintext
	Targets   *supervisor.Policy // where gateways may send the supervisors and sessions; nil: anywhere
	Report    *report.Writer     // what happens, for whoever started this; nil: untold
	Log       *slog.Logger       // nil: silent
}

// Validate reports every fault of the config, each naming its field and the flag that sets it.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("supervisord: Config."+format, args...))
	}
	if c.Service == "" {
		fault("Service (flag -service) is empty")
	}
	if len(c.Members) == 0 {
		fault("Members (flag -member, or -prefix) is empty: there is nobody to host")
	}
	seen := make(map[ring.MemberID]bool, len(c.Members))
	for _, m := range c.Members {
		switch {
		case m == "":
			fault("Members (flag -member) contains an empty name")
		case seen[m]:
			fault("Members (flag -member, or -prefix) names %q twice", m)
		}
		seen[m] = true
	}
	if c.Sessions < 0 {
		fault("Sessions (flag -sessions) is %d; it cannot be below 0", c.Sessions)
	}
	if err := c.Transport.Validate(); err != nil {
		fault("Transport (flag %w)", err)
	}
	if c.Targets != nil {
		if err := c.Targets.Validate(); err != nil {
			fault("Targets (flag -allow-target): %w", err)
		}
	}
	return errors.Join(errs...)
}

// allow is the policy as the machines take it; nil: every target is allowed.
func (c Config) allow() func(ring.GatewayID, string) error {
	if c.Targets == nil {
		return nil
	}
	return c.Targets.Allow
}
