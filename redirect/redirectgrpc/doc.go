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
//   - Callers, who want something of a supervisor or of a session, use a [Caller]
//     at any gateway; see [ServerConfig.Calls]. The request goes to the stream, one
//     hop away if need be, and [Transport.Serve] answers it there. A program that
//     has the gateway in its own process calls [forward.Call] instead, and one in
//     another language what [evenringpb.NewCallerClient] makes: the code says what
//     became of the call, and the [evenringpb.Reply] among the details says it exactly.
//
// # Requests while streams come and go
//
// A request is executed once at most, unless it says that twice does no harm. What
// was begun on a stream is answered on it: a supervisor that moves says goodbye
// to its old gateway when the answers are out ([Transport.Linger]), and a gateway
// that ends a stream waits for them ([ServerConfig.Linger]). What comes meanwhile
// is turned away, and goes to where the supervisor is by now.
//
// # Versions
//
// Both ends may be of different versions. Fields and frames that one end does
// not know are passed over. Outcomes, reasons, kinds and states travel as text;
// one that is not known becomes the harmless zero value: an outcome that admits
// nobody, [redirect.ReasonUnknown], a notice that is not delivered, a gateway
// that is still starting. A supervisor of a version that answers no requests is
// not sent any, and its callers are told at once.
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
// downgrade a stream. With TLS, the certificate must name the host that is
// dialled, and no credentials of a call are sent before that is seen. An
// address with a scheme is refused, but for [Transport.Service]. Which hosts a
// supervisor may be sent to at all is for Policy of package supervisor to say.
//
// A gateway should check in [ServerConfig.Authorize] that the supervisor is who
// it says, since the newest stream of a member ends the older ones. Whether it
// was sent there is for [redirect.Proofs]. And a gateway should let none but gateways call
// [evenringpb.Peer_Ask_FullMethodName], since each call may keep a place, and
// [evenringpb.Peer_Forward_FullMethodName], which passes [CallConfig.Authorize] by.
// A unary interceptor is where to do that.
package redirectgrpc
