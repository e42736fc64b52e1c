// SPDX-License-Identifier: Apache-2.0

// Package evenring spreads long-lived streams evenly over the gateways behind a
// Service, with one redirect, and moves nobody without need.
//
//	          supervisors
//	               |  1. dial the Service, say hello
//	               v
//	            Service, or any TCP load balancer
//	               |  picks any gateway
//	               v
//	+---------+  2. ask: keep a place?    +---------+
//	|         | ------------------------> |         |
//	| gateway |    3. yes                 | gateway |
//	|    A    | <------------------------ |    B    |
//	|         | <== who serves whom ====> |         |
//	+---------+                           +---------+
//	     |  4. redirect to B                   ^
//	     v                                     |
//	 supervisor -------------------------------+
//	               5. dial B, asking to stay
//
// Where a supervisor belongs is decided by a ring: its member ID hashes to a
// gateway, and if that one has its even share already, to the next on the way
// round. Who serves whom is known to all from a roster that the gateways
// replicate among themselves. A gateway that stops hands everybody over first:
// each supervisor closes its old stream only when its new one is accepted. The
// child sessions of a supervisor follow it.
//
// # Packages
//
// Under the drivers are pure state machines: time and randomness go in as
// arguments, actions come out, nothing is locked, opened or started.
//
//   - [github.com/evenring/evenring/ring]: the circle; who owns a member, who comes next
//   - [github.com/evenring/evenring/placement]: the choice of a gateway under a cap, and its explanation
//   - [github.com/evenring/evenring/placement/roster]: the replicated record of who serves whom, and readiness
//   - [github.com/evenring/evenring/placement/roster/rostertest]: examines a roster transport
//   - [github.com/evenring/evenring/redirect/forward]: calls that reach a supervisor through any gateway
//   - [github.com/evenring/evenring/redirect]: the words on the wire, and the gateway that answers them
//   - [github.com/evenring/evenring/redirect/supervisor]: what a supervisor dials next
//   - [github.com/evenring/evenring/redirect/session]: what a supervisor's child session dials next
//   - [github.com/evenring/evenring/handoff]: the drain of a gateway that stops
//   - [github.com/evenring/evenring/metrics]: the metrics contract, as data
//
// What needs more than two small dependencies is a module of its own:
//
//   - [github.com/evenring/evenring/placement/roster/gossip]: a roster over hashicorp/memberlist
//   - [github.com/evenring/evenring/placement/roster/kube]: discovery from Kubernetes' EndpointSlices
//   - [github.com/evenring/evenring/redirect/redirectgrpc]: streams and the peer link over gRPC
//   - [github.com/evenring/evenring/metrics/prom]: the metrics for Prometheus
//
// # Where to start
//
// A gateway makes one [github.com/evenring/evenring/redirect.Gateway], gives it
// streams and peers, and runs [github.com/evenring/evenring/handoff.Drain] before it
// stops. A supervisor calls [github.com/evenring/evenring/redirect/supervisor.Run] with its
// transport. The examples directory has both as programs, and a rollout that
// puts a fleet of them through restarts, a drain and a crash.
//
// # What holds
//
// Once a fleet is quiet, every supervisor that can reach a live gateway is
// attached to exactly one, and all gateways agree on which. A placement takes
// at most four dials, and nobody is refused because gateways are full: the cap is
// soft, and each admission above it says why. A gateway that drains, is
// suspect or not ready, or whose load or endpoint is unknown, is nobody's
// target. A healthy stream is asked to move only by a drain or at an operator's
// word: not when a gateway joins, not on a reconnect, not when a view fails. With
// room elsewhere, a supervisor has a working stream all through a drain. An older
// incarnation, sequence number or generation changes nothing.
//
// # What it is not
//
// It does not rebalance in the background, weigh latency or CPU, store anything,
// elect anybody, hold requests back or proxy them. Without surge, a rolling restart leaves
// the gateway that came last empty, as it must when a join moves nobody.
package evenring
