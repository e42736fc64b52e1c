// SPDX-License-Identifier: Apache-2.0

// Package kube discovers gateways in Kubernetes: it watches the EndpointSlices
// of a Service, tells the [roster.Replica] of one gateway, which redirect.Gateway
// is, who there is, and gives gossip the addresses to join. It carries no
// messages; a mesh does, beside it:
//
//	discovery, err := kube.Start(kube.Config{Gateway: id, Service: "gateways"}, gateway)
//	if err != nil { ... }
//	defer discovery.Close()
//	cfg.Discover = discovery.Seeds
//	mesh, err := gossip.Join(ctx, cfg, kube.LinksOnly(gateway))
//
// Gossip alone finds gateways too. What this adds is proof of who is gone: a
// mesh cannot tell a gateway that has died from one that is cut off, and keeps it
// in doubt if nobody else is left. And whoever waits for every gateway's record before
// it answers callers learns how many there are.
//
// # Who is a gateway
//
// Every endpoint of every slice that carries the Service's name in the label
// kubernetes.io/service-name. Its gateway ID is the name of the pod that it
// refers to, and its hostname if it refers to none. So a gateway's ID must be
// its pod's name, which is its host's name too unless the pod says otherwise. A pod is
// one [Peer], whether it has addresses of one family or of two, and whichever
// slices have them.
//
// Conditions do not matter for the list. A gateway that is not ready yet is
// waited for, no longer than roster.Config.Grace; one that is terminating serves
// while it drains, and says itself that it does.
//
// # What becomes of what happens
//
//   - A list, or a change of it: [roster.Discovered]. Peers that come are in it
//     at once, those that go after [Config.Settle].
//   - A list is partial as long as none has had this gateway itself: the
//     Service does not exist yet, has another name, or is behind. So is one with
//     an endpoint that has no name.
//   - The API server fails, for longer than [Config.Tolerance] or before the
//     first list: [roster.DiscoveryFailed]. Nobody is taken away by it, nor by
//     what is missing in the first list after it before Settle has passed again.
//   - The server has forgotten where the watch was (410 Gone): a new list,
//     which counts only as a whole.
//
// A new address of a pod changes [Discovery.Seeds], and not the list.
//
// # Permissions
//
// The service account needs get, list and watch on endpointslices in the API
// group discovery.k8s.io, in the Service's namespace, and nothing else:
//
//	rules:
//	  - apiGroups: [discovery.k8s.io]
//	    resources: [endpointslices]
//	    verbs: [get, list, watch]
//
// Without them the replica is told [ErrForbidden], and the log says it.
//
// # Limits
//
// A watch that the API server has silently dropped is noticed by client-go's
// pings, within about 45 s. A failed server is asked again after 0.2 s, and
// later every 15 to 22 s. Each gateway holds one watch, and is sent every change of
// a slice, each of which has up to 100 endpoints: fine for hundreds of gateways.
package kube
