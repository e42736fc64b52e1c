// SPDX-License-Identifier: Apache-2.0

package ring

import "github.com/cespare/xxhash/v2"

// GatewayID names one gateway replica. It outlives the process: two starts
// under one ID are told apart by their incarnation, not by their ID.
type GatewayID string

// MemberID names one supervisor. It outlives the supervisor's process and is
// what the ring hashes.
type MemberID string

// Hash returns the number that decides the member's slot: XXH64, with seed 0, of the ID's bytes.
func (m MemberID) Hash() uint64 { return xxhash.Sum64String(string(m)) }
