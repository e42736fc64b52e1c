// SPDX-License-Identifier: Apache-2.0

// Package examples holds programs that somebody could start from:
//
//   - gateway: a gateway server over gRPC or WebSocket, with gossip, mutual TLS, health, readiness and metrics
//   - supervisor: a process that hosts supervisors and their child sessions
//   - call: asks a supervisor, wherever it is, through any gateway
//   - explain: where a supervisor would be placed in a given fleet, and why
//   - simulate: a whole fleet that arrives at once on stale views, by several rules
//   - rollout: a whole fleet of both on this machine, put through restarts, a rollout, a crash and a scale-up
//   - convergence: how soon all gateways of a fleet agree on who serves whom, after everybody has come back at once
package examples
