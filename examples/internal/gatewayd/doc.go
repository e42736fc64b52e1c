// SPDX-License-Identifier: Apache-2.0

// Package gatewayd is a gateway as a process: evenring over gRPC or over WebSocket, with gossip
// between the gateways, metrics for Prometheus and pages for a person. It takes
// calls for every supervisor and session of the fleet, wherever they are. Copy
// it and put an application on its streams.
//
// From start to end:
//
//	starting   listens; looks for the other gateways; may be dialled, but
//	           /readyz says no, so that the Service does not send anybody yet
//	serving    knows the loads of the others, or has waited long enough for them
//	draining   takes nobody new and hands over whom it serves, in a time that
//	           is known at the start; /readyz says no, /healthz still yes; callers
//	           are answered to the end, and over HTTP told with each answer to connect anew
//	           leaves the fleet, tells what sessions are left to end, and returns
//
// A gateway that serves, and that discovery has listed and lists no more, stands aside: after
// -delist-grace it hands over as in a drain, but closes nothing, stays up, and
// serves again once it is listed again, or nobody else could. /readyz says yes all the while.
//
// Nobody moves because a gateway joins. After a rolling restart that has left one empty,
// POST /settle on the operator's address of every gateway evens the fleet out, once:
//
//	curl -X POST 'http://gw-1:7080/settle?budget=100&stable=10s'
//
// It answers when that is done, with who moved, as JSON; 409 while a drain or another settle is under way.
//
// # Who is let in
//
// Without TLS whoever reaches the port, supervisors and callers alike. With -tls-ca whoever has a certificate of
// that CA, whatever it names: a fleet that does not trust its supervisors
// with each other's names sets Authorize in redirectgrpc.ServerConfig or in redirectws.ServerConfig, and one
// that does not trust everybody to call sets it in the CallConfig beside. The gossip
// port is protected by -gossip-key. The operator's address is for the inside: it is plain HTTP, and
// whoever reaches it may have supervisors moved.
package gatewayd
