// SPDX-License-Identifier: Apache-2.0

package ring

// GatewayID names one gateway replica. It outlives the process: two starts
// under one ID are told apart by their incarnation, not by their ID.
type GatewayID string

// MemberID names one supervisor. It outlives the supervisor's process and is
// what the ring hashes.
type MemberID string
