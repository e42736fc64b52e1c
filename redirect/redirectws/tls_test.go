// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{cert: cert, key: key}
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue makes a certificate for name, good for loopback and for both ends.
func (a authority) issue(t testing.TB, name string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// server is a server's configuration that looks at clients' certificates, if they have any.
func (a authority) server(t testing.TB, name string, clients tls.ClientAuthType) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.issue(t, name)}, ClientAuth: clients, ClientCAs: a.pool(), MinVersion: tls.VersionTLS13}
}

// client presents itself as name; empty: as nobody.
func (a authority) client(t testing.TB, name string) *tls.Config {
	cfg := &tls.Config{RootCAs: a.pool(), MinVersion: tls.VersionTLS13}
	if name != "" {
		cfg.Certificates = []tls.Certificate{a.issue(t, name)}
	}
	return cfg
}

func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	f := newFleet()
	g := f.start(t, "gw", gateOptions{tls: ours.server(t, "gw", tls.NoClientCert)})
	f.meet(t)
	_, port, err := net.SplitHostPort(g.addr)
	require.NoError(t, err)
	for i, addr := range []string{g.addr, "localhost:" + port} {
		hello := redirect.Hello{Member: "m", Generation: placement.Generation(i) + 1}
		require.NoError(t, dial(t, Transport{TLS: ours.client(t, "")}, addr, hello).Close())
	}
	for name, row := range map[string]struct {
		tr   Transport
		want string
	}{
		"of another authority": {Transport{TLS: theirs.client(t, "")}, "unknown authority"},
		"plaintext":            {Transport{Plaintext: true}, "400"},
		"both":                 {Transport{TLS: ours.client(t, ""), Plaintext: true}, "one of the two"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := row.tr.Dial(inTime(t), g.addr, redirect.Hello{Member: "m", Generation: 9})
			require.ErrorContains(t, err, row.want)
		})
	}
}

// Nobody answers the handshake: the dial ends with its context, and leaves nothing behind.
func TestTLSSilence(t *testing.T) {
	silent := listen(t, "127.0.0.1:0")
	t.Cleanup(func() { _ = silent.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, _, err := Transport{TLS: newAuthority(t).client(t, "")}.Dial(ctx, silent.Addr().String(), someHello)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A certificate that is renewed is used by the next dial.
func TestRenewedCertificate(t *testing.T) {
	ours := newAuthority(t)
	f := newFleet()
	g := f.start(t, "gw", gateOptions{
		tls:    ours.server(t, "gw", tls.RequireAndVerifyClientCert),
		server: ServerConfig{Authorize: certified},
	})
	f.meet(t)
	cfg := ours.client(t, "")
	name := "m"
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		cert := ours.issue(t, name)
		return &cert, nil
	}
	tr := Transport{TLS: cfg}
	dial(t, tr, g.addr, someHello)
	name = "another"
	_, _, err := tr.Dial(inTime(t), g.addr, redirect.Hello{Member: "m", Generation: 2})
	require.ErrorContains(t, err, "another is not m")
}

// certified admits a supervisor under the name in its certificate alone.
func certified(ctx context.Context, h redirect.Hello) error {
	if name := RequestFrom(ctx).TLS.PeerCertificates[0].Subject.CommonName; name != string(h.Member) {
		return fmt.Errorf("%s is not %s", name, h.Member)
	}
	return nil
}

// Supervisors, gateways and the peer link, all with certificates: the redirect
// leads to another gateway under the same protection.
func TestMutualTLS(t *testing.T) {
	ours := newAuthority(t)
	f := newFleet()
	gates := make(map[ring.GatewayID]*gate)
	for _, id := range []ring.GatewayID{"a", "b"} {
		gates[id] = f.start(t, id, gateOptions{
			server: ServerConfig{Authorize: certified},
			tls:    ours.server(t, string(id), tls.RequireAndVerifyClientCert),
			peers:  ours.client(t, string(id)),
		})
	}
	f.meet(t)
	a, b := gates["a"], gates["b"]
	for i := range 6 {
		name := fmt.Sprint("m", i)
		tr := Transport{TLS: ours.client(t, name)}
		hello := redirect.Hello{Member: ring.MemberID(name), Generation: 1, CanRedirect: true}
		verdict, stream, err := tr.Dial(inTime(t), a.addr, hello)
		require.NoError(t, err)
		if verdict.Outcome == redirect.Redirect {
			hello.Stay, hello.Hops, hello.Cap = true, 1, verdict.Cap
			verdict, stream, err = tr.Dial(inTime(t), verdict.Endpoint, hello)
			require.NoError(t, err)
		}
		require.Equal(t, redirect.Accept, verdict.Outcome)
		t.Cleanup(func() { _ = stream.Close() })
	}
	require.Equal(t, 6, a.Stats().Served+b.Stats().Served)
	require.Positive(t, b.Stats().Served)
	require.Zero(t, a.Stats().AskFailures)

	t.Run("nobody", func(t *testing.T) {
		_, _, err := Transport{TLS: ours.client(t, "")}.Dial(inTime(t), a.addr, redirect.Hello{Member: "m0", Generation: 2})
		require.ErrorContains(t, err, "certificate required")
	})
	t.Run("under another's name", func(t *testing.T) {
		_, _, err := Transport{TLS: ours.client(t, "mallory")}.Dial(inTime(t), a.addr, redirect.Hello{Member: "m0", Generation: 2})
		require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), "%v", err)
	})
	t.Run("a peer without a certificate", func(t *testing.T) {
		p := &Peers{TLS: ours.client(t, "")}
		defer func() { require.NoError(t, p.Close()) }()
		_, err := p.Ask(inTime(t), at("a", a.addr), someQuestion)
		require.ErrorContains(t, err, "certificate required")
	})
}

// A server that speaks HTTP/2 to others serves streams and asks all the same.
func TestServerWithHTTP2(t *testing.T) {
	ours := newAuthority(t)
	g := alone(t, ServerConfig{})
	l := listen(t, "127.0.0.1:0")
	server := &http.Server{Handler: g.handler, TLSConfig: ours.server(t, "gw", tls.NoClientCert), ReadHeaderTimeout: patience}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	s := dial(t, Transport{TLS: ours.client(t, "")}, l.Addr().String(), someHello)
	require.NoError(t, s.Close())
	p := &Peers{TLS: ours.client(t, "")}
	defer p.Close()
	_, err := p.Ask(inTime(t), at("gw", l.Addr().String()), someQuestion)
	require.NoError(t, err)
}
