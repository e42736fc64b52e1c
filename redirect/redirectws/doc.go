// SPDX-License-Identifier: Apache-2.0

// Package redirectws carries the words of package redirect over WebSocket, and
// what gateways and callers say over HTTP, all at one address.
//
//   - A supervisor, or a child session, dials with a [Transport], which is a
//     [redirect.Transport]. The stream that it yields is a [*Stream]; it carries
//     the application's payloads beside the gateway's notices.
//   - A gateway serves a [Handler], and is handed the payloads in [ServerConfig.Serve].
//   - Gateways ask each other through [Peers], which is a [redirect.Peers]. The same
//     handler answers them.
//   - Callers, who want something of a supervisor or of a session, use a [Caller] at any
//     gateway; see [ServerConfig.Calls]. The request goes to the stream, one hop away
//     if need be, and [Transport.Serve] answers it there. A program that has the gateway
//     in its own process calls [forward.Call] instead.
//
// # Requests while streams come and go
//
// A request is executed once at most, unless it says that twice does no harm. What
// was begun on a stream is answered on it: a supervisor that moves says goodbye
// to its old gateway when the answers are out ([Transport.Linger]), and a gateway
// that ends a stream waits for them ([ServerConfig.Linger]). What comes meanwhile
// is turned away, and goes to where the supervisor is by now.
//
// # The stream
//
// What follows is a contract, by which a client in any language can be written.
// The files in testdata/golden are examples, one for each word.
//
// A supervisor opens a WebSocket at [AttachPath], with the subprotocol "evenring.v1".
// Extensions are not used. A text message is a word: a JSON object with one member, whose name says of what
// kind it is. A binary message is a payload, as the application has it.
//
//	up     {"hello":{...}}     first, and once
//	up     {"reply":{...}}     to a request
//	up     {"goodbye":{}}      last: nobody comes back for this stream
//	down   {"verdict":{...}}   first, and once
//	down   {"notice":{...}}
//	down   {"request":{...}}   only if the hello says that it answers
//	down   {"cancel":{...}}    nobody waits for that answer any more
//	both   {}                  somebody is still here
//
// These are the frames of evenring.proto, in package redirectgrpc, as protobuf
// maps them to JSON, but that replies have a status in place of a code. The members of each are:
//
//	hello     member, session, generation*, stay, hops, cap, avoid[], full[], canRedirect, home, proof+, answers
//	verdict   outcome, reason, gateway, endpoint, incarnation*, cap, full[], retryAfter~, generation*, proof+
//	notice    kind, reason, gateway, endpoint, incarnation*, cap, proof+
//	request   id*, payload+, timeout~
//	cancel    id*
//	reply     id*, outcome, payload+, status, message
//
//	*  an unsigned number of 64 bits, written as a string, for many readers of JSON
//	   round such numbers; a number is understood too
//	+  bytes, in base64 with padding
//	~  a duration, in seconds, with up to nine decimals: "1.5s"
//
// What they mean is said at [redirect.Hello], [redirect.Verdict] and [redirect.Notice].
// A member that is absent, or null, is empty, 0 or false. Outcomes, reasons and kinds are the texts that
// those types have.
//
// After any verdict but "accept" the gateway closes the WebSocket. A supervisor that leaves
// for good says goodbye, and waits for the gateway to close; one that closes, or breaks off,
// without it counts as lost, and is expected back.
//
// A reply has the ID of its request, and one of these outcomes:
//
//	"answered"    payload is the answer; or, with a status of HTTP, 400 to 599, message says why there is none
//	"not-here"    it was not executed, and another gateway may have the member
//	"no-calls"    it was not executed, for the member answers no requests
//	"uncertain"   it may have been executed; so may one with a word that a reader does not know
//
// Requests without a reply at the goodbye were not executed. A request whose timeout has
// passed, and one that is cancelled, need no reply.
//
// A message may have 64 KiB up to the verdict; after that, 5.5 MiB. A payload may have
// [MaxPayloadBytes], and that of a request or a reply [MaxCallBytes].
//
// Both ends close with these codes; the reason says more:
//
//	1000   in good order
//	1001   the gateway's program stops at once
//	1002   a word out of turn: a payload before the hello, a second hello
//	1007   a word that is no JSON, no UTF-8, or has members of another type
//	1008   not let in: not authorized, no hello in time, another subprotocol
//	1009   a message that is too long
//	1011   the gateway's application ended with an error
//	1013   the supervisor does not take what it is sent
//
// The application may close with others.
//
// Each end pings when nothing has come for 10 s, and gives the other up when nothing has come
// for 15 s. Whoever does not read for a while, because its application does not take what has
// come, has to send something every few seconds: a gateway sends heartbeats, a supervisor {}.
//
// # Posts
//
// What gateways and callers say is posted, as JSON, with content type application/json, and
// so is the answer. The parts are written as above; limit, attached, held and reserved are
// numbers.
//
//	[AskPath]       {from, member, generation*, limit, insist, reports[]}
//	  answer        {gateway, yes, state, reports[]}, and a report is
//	                {gateway, counts: {incarnation*, sequence*, attached, held, reserved}}
//	[ForwardPath]   {member, session, payload+, idempotent, timeout~}
//	  answer        a reply, without an ID
//	[CallPath]      {member, session, payload+, idempotent, timeout~}
//	  answer        a reply, without an ID, whose outcome may also be a text of [forward.Reason]
//
// An ask, and a forwarded call, that was looked at is answered with status 200. A call has the
// status of the member's answer, 200 or what it says; 404 if no gateway has the member; 503 if
// one may have it, and the request was not executed; 501 if it answers no requests; 502 if
// the request may have been executed, and the answer is lost; 504 if time ran out. What
// is turned away without being looked at has the outcome "refused": 400, 403, 413, 415, and 501 if
// the gateway takes no calls.
//
//	curl -H 'Content-Type: application/json' -d '{"member":"sup-1","payload":"aGk="}' http://localhost:8080/evenring/v1/call
//
// # Versions
//
// Both ends may be of different versions. Words and members that one end does
// not know are passed over. Outcomes, reasons, kinds and states travel as text;
// one that is not known becomes the harmless zero value: an outcome that admits
// nobody, [redirect.ReasonUnknown], a notice that is not delivered, a gateway
// that is still starting. A supervisor of a version that answers no requests is
// not sent any, and its callers are told at once.
//
// # Security
//
// There is no default for TLS: without it, and without being told to do without, dialling is
// an error. A redirect changes the address and never the credentials, so it cannot
// downgrade a stream, and redirects of HTTP are not followed. A gateway should check in
// [ServerConfig.Authorize] that
// the supervisor is who it says, since the newest stream of a member ends the
// older ones; and it should let none but gateways post to [AskPath], since each question may
// keep a place, and to [ForwardPath], which passes [CallConfig.Authorize] by. A handler in front
// of this one is where to do that, or a listener of its own. Browsers are let in from the gateway's own pages, and from
// those that [ServerConfig.OriginPatterns] names.
//
// The [http.Server] should have a ReadHeaderTimeout; its WriteTimeout, if it has one, bounds calls.
package redirectws
