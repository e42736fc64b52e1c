// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"slices"

	"github.com/buraksezer/consistent"
)

// build makes the ring of ids, which are ascending, distinct and not empty.
// cfg is valid and resolved. build keeps ids.
func build(cfg Config, ids []GatewayID, hash hasher) *Ring {
	r := &Ring{cfg: cfg}
	if len(ids) > 0 {
		r.ids = ids
		r.table = table(cfg, owning(cfg, ids, hash), hash)
		r.shares = make([]uint16, len(ids))
		for _, i := range r.table {
			if r.shares[i] == 0 {
				r.owners++
			}
			r.shares[i]++
		}
	}
	r.fingerprint = r.sum()
	return r
}

// owner is a gateway as consistent sees it.
type owner struct {
	position uint16
	name     string
}

// String returns the prefix of the gateway's virtual-node keys, to which
// consistent appends the node's index in decimal. Without a separator "gw-1"
// and "gw-11" would share keys. The slash makes them injective: an index
// holds no slash, so the last slash of a key ends the ID, whatever the ID holds.
func (o *owner) String() string { return o.name }

// owning returns, in ID order, the gateways among whom the slots are shared:
// all of them or, with fewer slots than gateways, the ones whose IDs hash
// lowest. (consistent would give everybody no room at all, and panic.)
func owning(cfg Config, ids []GatewayID, hash hasher) []*owner {
	owners := make([]*owner, len(ids))
	for i, id := range ids {
		owners[i] = &owner{position: uint16(i), name: string(id) + "/"}
	}
	if len(owners) <= cfg.Slots {
		return owners
	}
	rank := make([]uint64, len(ids))
	for i, id := range ids {
		rank[i] = hash([]byte(id))
	}
	slices.SortStableFunc(owners, func(a, b *owner) int { return cmp.Compare(rank[a.position], rank[b.position]) })
	owners = owners[:cfg.Slots]
	slices.SortFunc(owners, func(a, b *owner) int { return cmp.Compare(a.position, b.position) })
	return owners
}

// table asks consistent for the owner of every slot.
//
// consistent panics when a slot finds nobody with room. It cannot here: the
// owners are no more than the slots and the load is above 1, so a gateway's
// limit is above the exact even share, and while a slot is free somebody has
// room. The search leaves out the last virtual node, but everybody has more
// than one, each at a point of its own.
func table(cfg Config, owners []*owner, hash hasher) []uint16 {
	members := make([]consistent.Member, len(owners))
	for i, o := range owners {
		members[i] = o
	}
	c := consistent.New(members, consistent.Config{
		Hasher:            apart(owners, hash),
		PartitionCount:    cfg.Slots,
		ReplicationFactor: virtualNodes(len(owners)),
		Load:              cfg.Load,
	})
	t := make([]uint16, cfg.Slots)
	for slot := range t {
		t[slot] = c.GetPartitionOwner(slot).(*owner).position
	}
	return t
}
