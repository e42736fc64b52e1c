// SPDX-License-Identifier: Apache-2.0

package rostertest

import (
	"testing"
	"time"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// Node is one start of one gateway: what a transport is made for.
type Node struct {
	Gateway     ring.GatewayID
	Incarnation placement.Incarnation // higher for every start under one ID
	Replica     roster.Replica        // what the transport feeds
}

// Join connects a node with those that are in its network, and with those
// that will be. It need not wait until they have found each other. stop ends the
// node at once and without a goodbye, as if its process had died; once it has
// returned, the replica must not be stepped any more. It is called once.
//
// A fault of Join's own is for t to tell.
type Join func(t testing.TB, n Node) (transport roster.Transport, stop func())

// Run examines a transport in a few subtests. network makes an empty network,
// and is called once for each of them; what it needs to tidy up is for
// t.Cleanup. It takes some seconds, most of them waiting for heartbeats.
func Run(t *testing.T, network func(t testing.TB) Join) {
	t.Helper()
	for _, tr := range trials {
		t.Run(tr.name, func(t *testing.T) { tr.run(newExam(t, network(t), patience)) })
	}
}

// How rosters under examination are set, and how long is waited for what must come.
const (
	gateways  = 4
	heartbeat = 100 * time.Millisecond
	batch     = 5 * time.Millisecond
	forget    = time.Minute      // time-to-live: whoever dies here starts again
	patience  = 30 * time.Second // of the examiner
)

// trial is one subtest.
type trial struct {
	name string
	run  func(*exam)
}

var trials = []trial{
	{"messages arrive", messagesArrive},
	{"calm", calm},
	{"loss", func(e *exam) { storm(e, weather{loss: 0.4}) }},
	{"duplication", func(e *exam) { storm(e, weather{twice: 0.5}) }},
	{"delay and reordering", func(e *exam) { storm(e, weather{late: 0.5}) }},
	{"everything at once", func(e *exam) { storm(e, weather{loss: 0.3, twice: 0.3, late: 0.3}) }},
	{"partition and heal", partition},
	{"restart under the same ID", restart},
	{"large record", largeRecord},
}
