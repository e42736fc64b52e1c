// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"fmt"
	"net/http"
)

func (p *process) callersPage(w http.ResponseWriter, _ *http.Request) {
	ready, reason := p.readyForCallers()
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, reason)
}

// readyForCallers reports whether a balancer may send callers here, and why. A
// gateway that drains still answers those who come.
func (p *process) readyForCallers() (bool, string) {
	if phase(p.phase.Load()) == draining {
		return false, "draining"
	}
	check := p.gateway.Ready().Callers
	return check.OK, string(check.Reason)
}
