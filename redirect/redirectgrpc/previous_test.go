// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// previous is the message set of the version before this one.
type previous struct {
	t    testing.TB
	file protoreflect.FileDescriptor
}

func loadPrevious(t testing.TB) previous {
	data, err := os.ReadFile("testdata/previous/evenring.binpb")
	require.NoError(t, err)
	var set descriptorpb.FileDescriptorSet
	require.NoError(t, proto.Unmarshal(data, &set))
	files, err := protodesc.NewFiles(&set)
	require.NoError(t, err)
	file, err := files.FindFileByPath("evenring.proto")
	require.NoError(t, err)
	return previous{t, file}
}

// word is a message of the previous version, and its fields by name.
type word struct {
	*dynamicpb.Message
}

func (p previous) word(message string, fields ...any) word {
	w := word{dynamicpb.NewMessage(p.file.Messages().ByName(protoreflect.Name(message)))}
	for i := 0; i < len(fields); i += 2 {
		w.set(fields[i].(string), fields[i+1])
	}
	return w
}

func (w word) field(name string) protoreflect.FieldDescriptor {
	return w.Descriptor().Fields().ByName(protoreflect.Name(name))
}

func (w word) set(name string, value any) {
	if inner, ok := value.(word); ok {
		value = inner.Message
	}
	w.Set(w.field(name), protoreflect.ValueOf(value))
}

func (w word) text(name string) string   { return w.Get(w.field(name)).String() }
func (w word) number(name string) uint64 { return w.Get(w.field(name)).Uint() }
func (w word) bytes(name string) []byte  { return w.Get(w.field(name)).Bytes() }

// has returns the message in a field, false if there is none.
func (w word) has(name string) (word, bool) {
	inner, ok := w.Get(w.field(name)).Message().Interface().(*dynamicpb.Message)
	return word{inner}, ok && w.Has(w.field(name))
}

const attachMethod = "/evenring.v1.Gateway/Attach"

var bothWays = &grpc.StreamDesc{StreamName: "Attach", ClientStreams: true, ServerStreams: true}

// client is a supervisor's program of the previous version, on one stream.
type client struct {
	previous
	stream grpc.ClientStream
}

func (p previous) dial(addr string) *client {
	conn, err := grpc.NewClient(target(addr), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = conn.Close() })
	stream, err := conn.NewStream(bounded(p.t), bothWays, attachMethod)
	require.NoError(p.t, err)
	return &client{p, stream}
}

func (c *client) say(kind string, what word) {
	require.NoError(c.t, c.stream.SendMsg(c.word("ClientFrame", kind, what).Message))
}

// hear returns the next frame of a kind, and passes over what it does not know.
func (c *client) hear(kind string) word {
	for {
		frame := c.word("ServerFrame")
		require.NoError(c.t, c.stream.RecvMsg(frame.Message))
		if inner, ok := frame.has(kind); ok {
			return inner
		}
	}
}

// greet says a hello and returns the verdict.
func (c *client) greet(fields ...any) word {
	c.say("hello", c.word("Hello", fields...))
	return c.hear("verdict")
}

// proving starts gateways that make proofs, and require them or not.
func proving(t testing.TB, required bool, ids ...ring.GatewayID) map[ring.GatewayID]*gate {
	f := newFleet()
	gates := make(map[ring.GatewayID]*gate)
	for _, id := range ids {
		gates[id] = f.start(t, id, gateOptions{
			calls:  &CallConfig{},
			proofs: redirect.Proofs{Keys: [][]byte{make([]byte, 32)}, Required: required},
		})
	}
	f.meet(t)
	return gates
}

// A supervisor of the previous version is redirected, stays, moves when it is
// told to, and answers calls at gateways of this one, whose proofs it does not
// know; where they are required, it is placed where it was sent.
func TestPreviousSupervisor(t *testing.T) {
	for name, required := range map[string]bool{"proofs": false, "proofs required": true} {
		t.Run(name, func(t *testing.T) {
			p := loadPrevious(t)
			gates := proving(t, required, "a", "b")
			redirected := 0
			for i := range 8 {
				m := ring.MemberID([]byte{'m', byte('0' + i)})
				addr, fields := gates["a"].addr, []any{"member", string(m), "generation", uint64(1), "can_redirect", true, "answers", true}
				c := p.dial(addr)
				v := c.greet(fields...)
				if v.text("outcome") == "redirect" {
					redirected++
					require.NotEmpty(t, v.GetUnknown(), "there is a proof")
					c = p.dial(v.text("endpoint"))
					v = c.greet(append(fields, "stay", true, "hops", int64(1), "cap", v.Get(v.field("cap")).Int())...)
				}
				require.Equal(t, "accept", v.text("outcome"), "%v", v)

				go func() { // it echoes
					for {
						frame := c.word("ServerFrame")
						if c.stream.RecvMsg(frame.Message) != nil {
							return
						}
						if r, ok := frame.has("request"); ok {
							reply := c.word("Reply", "id", r.number("id"), "outcome", "answered", "payload", r.bytes("payload"))
							_ = c.stream.SendMsg(c.word("ClientFrame", "reply", reply).Message)
						}
						if n, ok := frame.has("notice"); ok && n.text("kind") == "end" {
							return
						}
					}
				}()
				// A caller of the previous version, at the other gateway or at this one.
				for _, g := range gates {
					conn, err := grpc.NewClient(target(g.addr), grpc.WithTransportCredentials(insecure.NewCredentials()))
					require.NoError(t, err)
					answer := p.word("CallReply")
					eventually(t, func() bool { // the other gateway has heard of it
						return conn.Invoke(bounded(t), "/evenring.v1.Caller/Call", p.word("CallRequest", "member", string(m), "payload", []byte("hi")).Message, answer.Message) == nil
					})
					require.Equal(t, "hi", string(answer.bytes("payload")))
					require.NoError(t, conn.Close())
				}
			}
			require.Positive(t, redirected)
			require.Equal(t, 8, gates["a"].Stats().Served+gates["b"].Stats().Served)
			require.InDelta(t, gates["a"].Stats().Served, gates["b"].Stats().Served, 1)

			c := p.dial(gates["a"].addr)
			v := c.greet("member", "mover", "generation", uint64(1), "stay", !required, "can_redirect", true)
			if v.text("outcome") == "redirect" {
				c = p.dial(v.text("endpoint"))
				v = c.greet("member", "mover", "generation", uint64(1), "stay", true, "hops", int64(1), "can_redirect", true)
			}
			at := gates[ring.GatewayID(v.text("gateway"))]
			_, err := at.MoveAway(bounded(t), "mover")
			require.NoError(t, err)
			for {
				n := c.hear("notice")
				if n.text("kind") != "move" {
					continue
				}
				require.NotEmpty(t, n.GetUnknown(), "there is a proof")
				d := p.dial(n.text("endpoint"))
				v := d.greet("member", "mover", "generation", uint64(2), "stay", true, "hops", int64(1), "can_redirect", true)
				require.Equal(t, "accept", v.text("outcome"), "%v", v)
				require.NotEqual(t, string(at.ID()), v.text("gateway"))
				d.say("goodbye", d.word("Goodbye"))
				break
			}
		})
	}
}

// A client that cannot follow redirects is served where it comes, and counted,
// whatever the proofs.
func TestPreviousClientThatCannotFollow(t *testing.T) {
	p := loadPrevious(t)
	gates := proving(t, true, "a", "b")
	for i := range 4 {
		v := p.dial(gates["a"].addr).greet("member", "old-"+string(rune('0'+i)), "generation", uint64(1))
		require.Equal(t, "accept", v.text("outcome"))
		require.Equal(t, "no-redirect", v.text("reason"))
		require.Equal(t, "a", v.text("gateway"))
	}
	s := gates["a"].Stats()
	require.EqualValues(t, 4, s.Verdicts[redirect.Accept][redirect.ReasonNoRedirect])
	require.Equal(t, 4, s.Served)
	require.Positive(t, s.OverCap[redirect.ReasonNoRedirect])
}

// What is refused for its proof is a refusal to every version.
func TestPreviousClientWithABadProof(t *testing.T) {
	p := loadPrevious(t)
	gates := proving(t, false, "a")
	bad := append([]byte{1}, make([]byte, 80)...)
	bad[10] = 0x7f // it has not run out
	v := p.dial(gates["a"].addr).greet("member", "m", "generation", uint64(1), "stay", true, "can_redirect", true, "proof", bad)
	require.Equal(t, "refuse", v.text("outcome"))
	require.Equal(t, "bad-proof", v.text("reason"))
	wait, ok := v.has("retry_after")
	require.True(t, ok)
	require.Positive(t, wait.Get(wait.field("seconds")).Int()+wait.Get(wait.field("nanos")).Int())
}

// Gateways of the previous version ask as those of this one do.
func TestPreviousPeer(t *testing.T) {
	p := loadPrevious(t)
	gates := proving(t, true, "a")
	conn, err := grpc.NewClient(target(gates["a"].addr), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	answer := p.word("Answer")
	require.NoError(t, conn.Invoke(bounded(t), "/evenring.v1.Peer/Ask",
		p.word("Question", "from", "z", "member", "m", "generation", uint64(1), "limit", int64(1)).Message, answer.Message))
	require.Equal(t, "a", answer.text("gateway"))
	require.Equal(t, "ready", answer.text("state"))
	require.True(t, answer.Get(answer.field("yes")).Bool())

	l := listen(t, "127.0.0.1:0")
	serve(t, l, func(s *grpc.Server) {
		s.RegisterService(&grpc.ServiceDesc{
			ServiceName: "evenring.v1.Peer", HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{MethodName: "Ask", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				q := p.word("Question")
				if err := decode(q.Message); err != nil {
					return nil, err
				}
				return p.word("Answer", "gateway", "z", "yes", q.text("member") == string(someQuestion.Member), "state", "ready").Message, nil
			}}},
		}, p)
	})
	got, err := plainPeers(t).Ask(bounded(t), at("z", l.Addr().String()), someQuestion)
	require.NoError(t, err)
	require.True(t, got.Yes)
}

// gateway serves a script of the previous version's words.
func (p previous) gateway(script func(grpc.ServerStream) error) string {
	l := listen(p.t, "127.0.0.1:0")
	serve(p.t, l, func(s *grpc.Server) {
		s.RegisterService(&grpc.ServiceDesc{
			ServiceName: "evenring.v1.Gateway", HandlerType: (*any)(nil),
			Streams: []grpc.StreamDesc{{StreamName: "Attach", ClientStreams: true, ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
				return script(stream)
			}}},
		}, p)
	})
	return l.Addr().String()
}

func (p previous) heard(stream grpc.ServerStream, kind string) (word, error) {
	for {
		frame := p.word("ClientFrame")
		if err := stream.RecvMsg(frame.Message); err != nil {
			return word{}, err
		}
		if inner, ok := frame.has(kind); ok {
			return inner, nil
		}
	}
}

func (p previous) says(stream grpc.ServerStream, kind string, what any) error {
	return stream.SendMsg(p.word("ServerFrame", kind, what).Message)
}

// A supervisor of this version is at home with gateways of the previous one,
// and with words that neither knows: it is redirected, accepted, called, told to
// move, and shows a proof only to who has given it one.
func TestPreviousGateway(t *testing.T) {
	p := loadPrevious(t)
	type greeting struct {
		at    string
		stay  bool
		proof []byte
	}
	greetings := make(chan greeting, 16)
	replies := make(chan string, 1)
	note := func(at string, h word) {
		greetings <- greeting{at, h.Get(h.field("stay")).Bool(), h.bytes("proof")}
	}
	second := p.gateway(func(stream grpc.ServerStream) error {
		h, err := p.heard(stream, "hello")
		if err != nil {
			return err
		}
		note("second", h)
		if err := p.says(stream, "verdict", p.word("Verdict", "outcome", "accept", "reason", "a-later-reason", "gateway", "second", "incarnation", uint64(1))); err != nil {
			return err
		}
		_, _ = p.heard(stream, "goodbye")
		return nil
	})
	first := p.gateway(func(stream grpc.ServerStream) error {
		h, err := p.heard(stream, "hello")
		if err != nil {
			return err
		}
		note("first", h)
		for _, frame := range []word{
			p.word("ServerFrame", "verdict", p.word("Verdict", "outcome", "accept", "reason", "stay", "gateway", "first", "incarnation", uint64(1))),
			p.word("ServerFrame", "notice", p.word("Notice", "kind", "a-later-kind", "gateway", "first", "incarnation", uint64(9))),
			p.word("ServerFrame", "notice", p.word("Notice", "kind", "heartbeat", "gateway", "first", "incarnation", uint64(1))),
			p.word("ServerFrame", "request", p.word("Request", "id", uint64(7), "payload", []byte("hi"))),
		} {
			if err := stream.SendMsg(frame.Message); err != nil {
				return err
			}
		}
		r, err := p.heard(stream, "reply")
		if err != nil {
			return err
		}
		replies <- r.text("outcome") + " " + string(r.bytes("payload"))
		if err := p.says(stream, "notice", p.word("Notice", "kind", "move", "reason", "draining", "gateway", "second", "endpoint", second, "incarnation", uint64(1))); err != nil {
			return err
		}
		_, _ = p.heard(stream, "goodbye")
		return nil
	})
	var visits atomic.Int32
	service := p.gateway(func(stream grpc.ServerStream) error {
		h, err := p.heard(stream, "hello")
		if err != nil {
			return err
		}
		note("service", h)
		if visits.Add(1) == 1 {
			return p.says(stream, "verdict", p.word("Verdict", "outcome", "a-later-outcome"))
		}
		return p.says(stream, "verdict", p.word("Verdict", "outcome", "redirect", "reason", "placed", "gateway", "first", "endpoint", first, "incarnation", uint64(1)))
	})

	ctx, cancel := context.WithCancel(context.Background())
	homes := make(chan supervisor.Home, 8)
	done := make(chan error, 1)
	tr := plain
	tr.Serve = func(_ context.Context, request []byte) ([]byte, error) { return append(request, '!'), nil }
	go func() {
		done <- supervisor.Run(ctx, supervisor.Config{Member: "m", Service: service, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond}, tr,
			supervisor.Hooks{Home: func(h supervisor.Home) { homes <- h }})
	}()
	defer func() { cancel(); require.NoError(t, receive(t, done)) }()

	require.Equal(t, greeting{"service", false, nil}, receive(t, greetings))
	require.Equal(t, greeting{"service", false, nil}, receive(t, greetings), "an outcome that it does not know is none")
	require.Equal(t, greeting{"first", true, nil}, receive(t, greetings))
	require.Equal(t, ring.GatewayID("first"), receive(t, homes).Gateway)
	require.Equal(t, "answered hi!", receive(t, replies))
	require.Equal(t, greeting{"second", true, nil}, receive(t, greetings))
	require.Equal(t, ring.GatewayID("second"), receive(t, homes).Gateway)
}

// A proof of this version passes a previous gateway unharmed, in the hello that
// it always had a place for.
func TestProofReachesPreviousGateway(t *testing.T) {
	p := loadPrevious(t)
	proofs := make(chan []byte, 1)
	addr := p.gateway(func(stream grpc.ServerStream) error {
		h, err := p.heard(stream, "hello")
		if err != nil {
			return err
		}
		proofs <- h.bytes("proof")
		return p.says(stream, "verdict", p.word("Verdict", "outcome", "refuse"))
	})
	hello := someHello
	hello.Proof = []byte{1, 2, 3}
	verdict, _, err := plain.Dial(bounded(t), addr, hello)
	require.NoError(t, err)
	require.Equal(t, redirect.Refuse, verdict.Outcome)
	require.Equal(t, hello.Proof, receive(t, proofs))
}

// Every field of the previous version is there still: number, type and name. A
// field's name does not travel, but in JSON it does.
func TestPreviousFieldsAreKept(t *testing.T) {
	p := loadPrevious(t)
	now := evenringpb.File_evenringpb_evenring_proto
	require.Equal(t, p.file.Package(), now.Package())
	for i := range p.file.Messages().Len() {
		old := p.file.Messages().Get(i)
		current := now.Messages().ByName(old.Name())
		require.NotNil(t, current, old.Name())
		for j := range old.Fields().Len() {
			was := old.Fields().Get(j)
			is := current.Fields().ByNumber(was.Number())
			require.NotNil(t, is, was.FullName())
			require.Equal(t, []any{was.Name(), was.Kind(), was.Cardinality()}, []any{is.Name(), is.Kind(), is.Cardinality()}, was.FullName())
			if was.Message() != nil {
				require.Equal(t, was.Message().FullName(), is.Message().FullName())
			}
			if was.ContainingOneof() != nil {
				require.Equal(t, was.ContainingOneof().Name(), is.ContainingOneof().Name(), was.FullName())
			}
		}
	}
	for i := range p.file.Services().Len() {
		old := p.file.Services().Get(i)
		current := now.Services().ByName(old.Name())
		require.NotNil(t, current, old.Name())
		for j := range old.Methods().Len() {
			was := old.Methods().Get(j)
			is := current.Methods().ByName(was.Name())
			require.NotNil(t, is, was.FullName())
			require.Equal(t,
				[]any{was.Input().FullName(), was.Output().FullName(), was.IsStreamingClient(), was.IsStreamingServer()},
				[]any{is.Input().FullName(), is.Output().FullName(), is.IsStreamingClient(), is.IsStreamingServer()}, was.FullName())
		}
	}
}

// Each version reads the other's messages, passes over what it does not know,
// and hands on everything.
func TestPreviousMessagesAreRead(t *testing.T) {
	p := loadPrevious(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range p.file.Messages().Len() {
		old := p.file.Messages().Get(i)
		current := evenringpb.File_evenringpb_evenring_proto.Messages().ByName(old.Name())
		for range 100 {
			for _, way := range [][2]protoreflect.MessageDescriptor{{old, current}, {current, old}} {
				sent := dynamicpb.NewMessage(way[0])
				stuff(sent, rng, 3)
				data, err := proto.Marshal(sent)
				require.NoError(t, err)
				read := dynamicpb.NewMessage(way[1])
				require.NoError(t, proto.Unmarshal(data, read))
				read.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
					if f.Message() == nil {
						was := sent.Get(way[0].Fields().ByNumber(f.Number()))
						require.True(t, f.IsList() || was.Equal(v), f.FullName())
					}
					return true
				})
				data, err = proto.Marshal(read)
				require.NoError(t, err)
				back := dynamicpb.NewMessage(way[0])
				require.NoError(t, proto.Unmarshal(data, back))
				require.True(t, proto.Equal(sent, back), "%v\n%v", sent, back)
			}
		}
	}
}

// stuff fills a message at random, down to some depth.
func stuff(m protoreflect.Message, rng *rand.Rand, depth int) {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch {
		case rng.IntN(3) == 0:
		case f.IsList():
			for range rng.IntN(3) {
				if f.Message() == nil {
					m.Mutable(f).List().Append(scalar(f, rng))
				} else if depth > 0 {
					stuff(m.Mutable(f).List().AppendMutable().Message(), rng, depth-1)
				}
			}
		case f.Message() == nil:
			m.Set(f, scalar(f, rng))
		case depth > 0:
			stuff(m.Mutable(f).Message(), rng, depth-1)
		}
	}
}

func scalar(f protoreflect.FieldDescriptor, rng *rand.Rand) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rng.IntN(2) == 0)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(rune('a' + rng.IntN(26))))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{byte(rng.Uint32()), 0})
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(rng.Uint64())
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(rng.Uint64()))
	default:
		return protoreflect.ValueOfInt32(int32(rng.Uint32()))
	}
}
