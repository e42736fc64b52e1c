// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// maxAvoided bounds the avoid list; the oldest entry makes room.
const maxAvoided = 8

// avoidList holds the gateways not to be sent to: those that could not be
// reached, were lost, or are being left. An entry ends when the gateway accepts
// the supervisor or shows a newer incarnation, and by itself after a while: by
// then the fleet knows better. It is a value: a copy shares nothing.
type avoidList struct {
	entries [maxAvoided]avoided
	count   int
}

type avoided struct {
	gateway     ring.GatewayID
	incarnation placement.Incarnation // 0: not known
	until       time.Time
}

func (l *avoidList) add(gateway ring.GatewayID, incarnation placement.Incarnation, until time.Time) {
	if gateway == "" {
		return
	}
	l.remove(gateway)
	if l.count == maxAvoided {
		l.removeAt(0)
	}
	l.entries[l.count] = avoided{gateway, incarnation, until}
	l.count++
}

func (l *avoidList) remove(gateway ring.GatewayID) {
	if i := l.find(gateway); i >= 0 {
		l.removeAt(i)
	}
}

func (l *avoidList) removeAt(i int) {
	copy(l.entries[i:], l.entries[i+1:l.count])
	l.count--
	l.entries[l.count] = avoided{}
}

func (l *avoidList) find(gateway ring.GatewayID) int {
	for i, e := range l.entries[:l.count] {
		if e.gateway == gateway {
			return i
		}
	}
	return -1
}

// seen ends the entry of a gateway that shows a newer incarnation.
func (l *avoidList) seen(gateway ring.GatewayID, incarnation placement.Incarnation) {
	if i := l.find(gateway); i >= 0 && l.entries[i].incarnation != 0 && incarnation > l.entries[i].incarnation {
		l.removeAt(i)
	}
}

func (l *avoidList) has(gateway ring.GatewayID, now time.Time) bool {
	i := l.find(gateway)
	return i >= 0 && now.Before(l.entries[i].until)
}

// gateways returns those avoided at now, the longest avoided first, in a new slice.
func (l *avoidList) gateways(now time.Time) []ring.GatewayID {
	var list []ring.GatewayID
	for _, e := range l.entries[:l.count] {
		if now.Before(e.until) {
			list = append(list, e.gateway)
		}
	}
	return list
}
