// SPDX-License-Identifier: Apache-2.0

package roster

// Live estimates how many distinct supervisors the fleet has: attached
// anywhere, on hold, or with a place reserved. It takes time in proportion to
// the gateways, not to the members.
//
// Members are known by name as far as records go; newer counts and
// reservations tell of more, without names:
//
//	named     = distinct members in all records
//	unnamed   = places reserved anywhere, and what each gateway's newest counts have beyond its record
//	displaced = members whose place is a hold, or a suspect or draining gateway
//	live      = named + max(0, unnamed - displaced)
//
// A displaced member is expected to turn up elsewhere, where it appears
// without a name at first; so as many unnamed places as there are displaced
// members are taken to be theirs, and nobody counts twice while he moves.
// What is left are newcomers. While somebody both moves and arrives, the
// estimate may be low by the smaller of the two for as long as a delta takes;
// it is exact when no place is reserved and every record has caught up.
func (r *Roster) Live() int {
	unnamed, displaced := 0, 0
	for _, rec := range r.sorted {
		if !rec.untrusted() {
			unnamed += rec.newest.Reserved // nobody is on the way to a gateway that is lost
		}
		displaced += rec.displaced()
		if rec != r.self {
			unnamed += rec.unseen()
		}
	}
	return len(r.claims.places) + max(0, unnamed-displaced)
}
