// SPDX-License-Identifier: Apache-2.0

// Package gossip carries a roster's messages between gateways that find and
// watch each other by gossip, over github.com/hashicorp/memberlist. A [Mesh]
// is the [roster.Transport] of one gateway, and feeds its [roster.Replica],
// which redirect.Gateway is:
//
//	mesh, err := gossip.Join(ctx, cfg, gateway)
//	if err != nil { ... }
//	defer mesh.Leave(5 * time.Second)
//	go gateway.Run(ctx, mesh)
//	_ = mesh.WaitPeers(startCtx) // then serve
//
// # What becomes of what happens
//
//   - A node joins: [roster.LinkUp].
//   - A node says that it leaves: [roster.Departed].
//   - A node dies, or cannot be sent something: [roster.LinkLost].
//   - The list of nodes changes: [roster.Discovered]. It is partial until a
//     first look at the seeds is over, which does not wait for those that do not
//     answer if one does.
//   - No other gateway is found, or all have been lost:
//     [roster.DiscoveryFailed]. That every peer has died is no proof, since this
//     gateway may have been cut off.
//   - A message arrives: [roster.Received], without From. A node's word on
//     who it is would be worth no more than the message's own.
//
// A node is one start of one gateway: its name is made of ID and incarnation.
// A gateway that starts again under its ID is thus a new node from the first
// moment, and the old one dies by itself, which the roster is not told. If two
// processes under one ID are alive, what is sent to that ID goes to the newer
// one, and what is sent to everybody goes to both, so that the older one learns
// of the other.
//
// # How messages travel
//
// Messages go directly from gateway to gateway, each peer with a queue and a
// sender of its own, over TCP: a delta that announces a drain has to arrive
// before the drain begins, and a packet that is lost would be repaired by the
// next heartbeat only. A connection is made for each frame, not for each
// message: what gathers while one is under way, up to 1 MiB, is the next. It is
// under way until the peer has taken it, so that messages arrive in the order in
// which they were sent. A queue beyond [Config.Backlog] refuses messages, and
// heartbeats repair that.
//
// # Network and security
//
// The port of [Config.Bind] must be open between all gateways for TCP and for
// UDP, by which they probe each other; where UDP is blocked, a probe goes over
// TCP, and takes longer. In Kubernetes, the Seeds of a kube.Discovery are what
// [Config.Discover] wants. A headless Service with publishNotReadyAddresses is a
// good seed too: its name stands for all gateways, and they can meet before they
// are ready.
//
// Without [Config.Key], whoever reaches the port may join and say anything
// about any gateway. With it, traffic is encrypted, and whoever has the key may.
// [Mesh.SetKeys] changes it in a running fleet. Gateways with another key or
// another [Config.Label] do not hear each other. The one that is turned away says
// so, by [ErrKey] or naming the label, in its log, to its replica and from
// [Mesh.WaitPeers]; the other one logs it.
//
// # Limits
//
// A gateway that dies is noticed by the first failing send, and otherwise
// after about four to eight probe intervals. A gateway that was lost is looked
// for at its old address for an hour, and at the seeds for ever. Two meshes
// that have grown up apart come together within some thirty probe intervals if one
// of them has a seed in the other. A gateway whose mesh is closed and joins again
// under another address, with the same incarnation, is unreachable until its old
// node has died and lists have been exchanged, which takes up to some fifty
// probe intervals. The list of nodes and the number of messages
// grow with the number of gateways: this is for hundreds of them, not for thousands.
package gossip
