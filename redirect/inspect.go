// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"time"

	"github.com/evenring/evenring/placement/roster"
)

// Inspect lets f read the roster at one moment. Nothing else happens at this gateway
// meanwhile: f must not block, change the roster, keep it, or call the gateway.
func (g *Gateway) Inspect(f func(*roster.Roster)) {
	g.do(func(_ time.Time, a *Admission) { f(a.Roster()) })
}
