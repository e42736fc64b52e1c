// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// virtualNodes returns how many points on the hash circle stand for each of
// so many owners. More of them move fewer slots when a gateway comes or goes,
// and the largest share does not depend on them: the load bounds it. They
// shrink in number as the fleet grows because consistent sorts all points
// again for each gateway, so that New takes time in the square of them. The
// figures are in testdata/README.md.
func virtualNodes(owners int) int {
	const total, most, least = 2048, 20, 4
	return max(least, min(most, total/owners))
}

// hasher is the hash of the circle: of slots, virtual nodes and gateway IDs.
type hasher func([]byte) uint64

// Sum64 makes a hasher a consistent.Hasher.
func (h hasher) Sum64(key []byte) uint64 { return h(key) }

// node is a virtual node and its point on the circle.
type node struct {
	point uint64
	owner *owner
	index int
}

func (n node) appendKey(b []byte) []byte {
	return strconv.AppendInt(append(b, n.owner.name...), int64(n.index), 10)
}

// apart returns hash, changed where needed so that no two virtual nodes have
// one point. consistent keeps only the last comer to a point: the order of
// input would decide, and a gateway could vanish from the circle. Of equals,
// the first in order of ID and index stays, and each other one takes the next
// free point; those pushed beyond the end of the circle push back.
func apart(owners []*owner, hash hasher) hasher {
	each := virtualNodes(len(owners))
	nodes := make([]node, 0, len(owners)*each)
	var key []byte
	for _, o := range owners {
		for i := range each {
			n := node{owner: o, index: i}
			key = n.appendKey(key[:0])
			n.point = hash(key)
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b node) int {
		if a.point != b.point {
			return cmp.Compare(a.point, b.point)
		}
		return cmp.Or(cmp.Compare(a.owner.position, b.owner.position), cmp.Compare(a.index, b.index))
	})

	moved := make(map[string]uint64)
	move := func(n *node, point uint64) {
		n.point = point
		moved[string(n.appendKey(nil))] = point
	}
	for i := 1; i < len(nodes); i++ {
		if before := nodes[i-1].point; nodes[i].point <= before && before < math.MaxUint64 {
			move(&nodes[i], before+1)
		}
	}
	for i := len(nodes) - 2; i >= 0; i-- {
		if after := nodes[i+1].point; nodes[i].point >= after {
			move(&nodes[i], after-1)
		}
	}
	if len(moved) == 0 {
		return hash
	}
	return func(key []byte) uint64 {
		if point, ok := moved[string(key)]; ok {
			return point
		}
		return hash(key)
	}
}
