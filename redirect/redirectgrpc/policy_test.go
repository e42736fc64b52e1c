// SPDX-License-Identifier: Apache-2.0

package redirectgrpc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc/evenringpb"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

// issueFor makes a server's certificate for these hosts alone.
func (a authority) issueFor(t testing.TB, hosts ...string) credentials.TransportCredentials {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: hosts[0]}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13,
	})
}

// token is a credential of every call.
type token string

func (s token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": string(s)}, nil
}

func (token) RequireTransportSecurity() bool { return true }

// witness is a server that notes what every call shows.
type witness struct {
	addr string

	mu     sync.Mutex
	tokens []string
	conns  int
}

func (w *witness) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.tokens)
}

func (w *witness) Accept(inner net.Listener) (net.Conn, error) {
	conn, err := inner.Accept()
	if err == nil {
		w.mu.Lock()
		w.conns++
		w.mu.Unlock()
	}
	return conn, err
}

func (w *witness) connections() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conns
}

type watched struct {
	net.Listener
	w *witness
}

func (l watched) Accept() (net.Conn, error) { return l.w.Accept(l.Listener) }

// attests serves script on l behind these credentials, and notes the tokens.
func attests(t testing.TB, secure credentials.TransportCredentials, attach script) *witness {
	l := listen(t, "127.0.0.1:0")
	w := &witness{addr: l.Addr().String()}
	serve(t, watched{l, w}, func(s *grpc.Server) {
		evenringpb.RegisterGatewayServer(s, scripted{attach: func(stream evenringpb.Gateway_AttachServer) error {
			md, _ := metadata.FromIncomingContext(stream.Context())
			w.mu.Lock()
			w.tokens = append(w.tokens, strings.Join(md.Get("authorization"), ","))
			w.mu.Unlock()
			return attach(stream)
		}})
	}, grpc.Creds(secure))
	return w
}

// sending redirects whoever does not ask to stay to endpoint, and accepts the others.
func sending(endpoint string) script {
	return func(attach evenringpb.Gateway_AttachServer) error {
		up, err := attach.Recv()
		if err != nil {
			return err
		}
		if !up.GetHello().GetStay() {
			return attach.Send(verdictFrame(redirect.Verdict{
				Outcome: redirect.Redirect, Reason: redirect.ReasonPlaced, Gateway: "target", Endpoint: endpoint, Incarnation: 1,
			}))
		}
		if err := attach.Send(verdictFrame(redirect.Verdict{Outcome: redirect.Accept, Gateway: "service", Incarnation: 1})); err != nil {
			return err
		}
		return untilEnd(attach)
	}
}

// journey runs a supervisor until it is accepted, and returns where, and what it dialled.
func journey(t *testing.T, cfg supervisor.Config, tr Transport) (home ring.GatewayID, dials []supervisor.Dial) {
	ctx, cancel := context.WithCancel(context.Background())
	homes := make(chan supervisor.Home, 1)
	done := make(chan error, 1)
	go func() {
		done <- supervisor.Run(ctx, cfg, tr, supervisor.Hooks{
			Home: func(h supervisor.Home) {
				select {
				case homes <- h:
				default:
				}
			},
			Observe: func(o supervisor.Observation) {
				for _, action := range o.Actions {
					if d, ok := action.(supervisor.Dial); ok {
						dials = append(dials, d)
					}
				}
			},
		})
	}()
	defer func() {
		cancel()
		require.NoError(t, receive(t, done))
	}()
	return receive(t, homes).Gateway, dials
}

// S32: a redirect chooses a host and a port. It chooses no resolver, no other
// security, and nothing of it is dialled if it tries.
func TestS32SchemesInRedirects(t *testing.T) {
	bait := attests(t, insecure.NewCredentials(), sending(""))
	for _, scheme := range []string{"ws://", "wss://", "http://", "https://", "grpc://", "dns:///", "dns:", "passthrough:///", "passthrough:", "unix:", "unix:///", "xds:///", "ipv4:", "//", "user@", ""} {
		path := ""
		if scheme == "" {
			path = "/path"
		}
		endpoint := scheme + bait.addr + path
		t.Run(endpoint, func(t *testing.T) {
			_, _, err := plain.Dial(bounded(t), endpoint, someHello)
			require.ErrorContains(t, err, "redirectgrpc: dial "+endpoint)
			service, _ := scriptedGateway(t, sending(endpoint))
			home, dials := journey(t, supervisor.Config{Member: "m", Service: service}, plain)
			require.Equal(t, ring.GatewayID("service"), home)
			require.Len(t, dials, 3, "the Service, what it said, and the Service to stay: %+v", dials)
			require.Equal(t, service, dials[2].Addr)
			require.Equal(t, []ring.GatewayID{"target"}, dials[2].Hello.Avoid)
		})
	}
	require.Zero(t, bait.connections())
	p := plainPeers(t)
	_, err := p.Ask(bounded(t), at("target", "dns:///"+bait.addr), someQuestion)
	require.ErrorContains(t, err, `"dns:///`+bait.addr+`"`)
	require.Zero(t, bait.connections())
}

// S31, S32: a target must prove that it is the host that was named before it is shown
// anything; if it does not, the supervisor is served by the Service, as if
// the target had not been there.
func TestS32TargetsAreDialledUnderTheSameProtection(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	const secret = token("Bearer of secrets")
	for _, row := range []struct {
		name   string
		secure credentials.TransportCredentials
		home   ring.GatewayID
		host   string
	}{
		{"a peer", ours.issueFor(t, "127.0.0.1"), "target", ""},
		{"a peer by name", ours.issueFor(t, "localhost"), "target", "localhost"},
		{"a certificate for another host", ours.issueFor(t, "other.example", "10.0.0.1"), "service", ""},
		{"a certificate for another name", ours.issueFor(t, "127.0.0.1"), "service", "localhost"},
		{"a certificate of another authority", theirs.issueFor(t, "127.0.0.1"), "service", ""},
		{"plaintext", insecure.NewCredentials(), "service", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			target := attests(t, row.secure, func(attach evenringpb.Gateway_AttachServer) error {
				if _, err := attach.Recv(); err != nil {
					return err
				}
				if err := attach.Send(verdictFrame(redirect.Verdict{Outcome: redirect.Accept, Gateway: "target", Incarnation: 1})); err != nil {
					return err
				}
				return untilEnd(attach)
			})
			endpoint := target.addr
			if row.host != "" {
				_, port, err := net.SplitHostPort(target.addr)
				require.NoError(t, err)
				endpoint = net.JoinHostPort(row.host, port)
			}
			service := attests(t, ours.issueFor(t, "127.0.0.1"), sending(endpoint))
			tr := Transport{Credentials: ours.client(t, ""), Options: []grpc.DialOption{grpc.WithPerRPCCredentials(secret)}}
			home, dials := journey(t, supervisor.Config{Member: "m", Service: service.addr}, tr)
			require.Equal(t, row.home, home)
			require.Equal(t, endpoint, dials[1].Addr)
			require.Contains(t, service.seen(), string(secret))
			if row.home == "target" {
				require.Equal(t, []string{string(secret)}, target.seen())
				return
			}
			require.Positive(t, target.connections(), "it was dialled")
			require.Empty(t, target.seen(), "and shown nothing")
			require.Len(t, dials, 3)
			require.True(t, dials[2].Hello.Stay)
			require.Equal(t, []ring.GatewayID{"target"}, dials[2].Hello.Avoid)
		})
	}
}

// S32: what the policy does not have is not even dialled.
func TestS32Policy(t *testing.T) {
	target := attests(t, insecure.NewCredentials(), sending(""))
	service, _ := scriptedGateway(t, sending(target.addr))
	policy := supervisor.Policy{Suffixes: []string{".gw.example.com"}}
	home, dials := journey(t, supervisor.Config{Member: "m", Service: service, Allow: policy.Allow}, plain)
	require.Equal(t, ring.GatewayID("service"), home)
	require.Len(t, dials, 2)
	require.EqualError(t, dials[1].Passed, `supervisor: not sent to "target" at "`+target.addr+`": the policy does not have 127.0.0.1`)
	require.Zero(t, target.connections())

	policy = supervisor.Policy{Hosts: []string{"127.0.0.1"}}
	_, dials = journey(t, supervisor.Config{Member: "m", Service: service, Allow: policy.Allow}, plain)
	require.Equal(t, target.addr, dials[1].Addr)
	require.Positive(t, target.connections())
}
