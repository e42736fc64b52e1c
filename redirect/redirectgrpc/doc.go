// SPDX-License-Identifier: Apache-2.0

// Package redirectgrpc carries the words of package redirect over gRPC.
//
// One stream, [evenringpb.Gateway_Attach_FullMethodName], serves both sides:
//
//   - A supervisor, or a child session, dials with a [Transport], which is a
//     [redirect.Transport]. The stream that it yields is a [*Stream]; it carries
//     the application's payloads beside the gateway's notices.
//   - A gateway calls [Register] on its gRPC server, made with
//     [ServerOptions], and is handed the payloads in [ServerConfig.Serve].
//   - Gateways ask each other through [Peers], which is a [redirect.Peers].
//     [Register] answers them on the same server.
//
// # Versions
//
// Both ends may be of different versions. Fields and frames that one end does
// not know are passed over. Outcomes, reasons, kinds and states travel as text;
// one that is not known becomes the harmless zero value: an outcome that admits
// nobody, [redirect.ReasonUnknown], a notice that is not delivered, a gateway
// that is still starting.
//
// # Text
//
// IDs and endpoints are protobuf strings, so they must be valid UTF-8. Sending
// one that is not is an error, on the side that sends.
//
// # Security
//
// There is no default for credentials: without any, dialling is an error.
// [google.golang.org/grpc/credentials/insecure] asks for plaintext by name.
// A redirect changes the address and never the credentials, so it cannot
// downgrade a stream. A gateway should check in [ServerConfig.Authorize] that
// the supervisor is who it says, since the newest stream of a member ends the
// older ones; and it should let none but gateways call
// [evenringpb.Peer_Ask_FullMethodName], since each call may keep a place. A
// unary interceptor is where to do that.
package redirectgrpc
