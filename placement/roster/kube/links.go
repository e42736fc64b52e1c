// SPDX-License-Identifier: Apache-2.0

package kube

import "github.com/evenring/evenring/placement/roster"

// LinksOnly returns a replica to give to a mesh, such as gossip's, beside a
// [Discovery]. The mesh's own lists, and its word that it has none, do not
// reach the replica: Kubernetes says who there is, and the mesh who can be reached.
// Otherwise the one's list would take away whom only the other has, and
// whichever spoke last would be believed.
func LinksOnly(replica roster.Replica) roster.Replica { return linksOnly{replica} }

type linksOnly struct{ roster.Replica }

// Step implements [roster.Replica].
func (l linksOnly) Step(ev roster.Event) {
	switch ev.(type) {
	case roster.Discovered, roster.DiscoveryFailed:
	default:
		l.Replica.Step(ev)
	}
}
