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
	"errors"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

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

// mutual is a server's configuration that asks every client for a certificate.
func (a authority) mutual(t testing.TB, name string) credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{a.issue(t, name)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool(), MinVersion: tls.VersionTLS13,
	})
}

// client presents itself as name; empty: as nobody.
func (a authority) client(t testing.TB, name string) credentials.TransportCredentials {
	cfg := &tls.Config{RootCAs: a.pool(), MinVersion: tls.VersionTLS13}
	if name != "" {
		cfg.Certificates = []tls.Certificate{a.issue(t, name)}
	}
	return credentials.NewTLS(cfg)
}

func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	f := newFleet()
	g := f.start(t, "gw", gateOptions{credentials: credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{ours.issue(t, "gw")}, MinVersion: tls.VersionTLS13,
	})})
	f.meet(t)
	_, port, err := net.SplitHostPort(g.addr)
	require.NoError(t, err)
	for i, addr := range []string{g.addr, "localhost:" + port} {
		hello := redirect.Hello{Member: "m", Generation: placement.Generation(i) + 1}
		require.NoError(t, dial(t, Transport{Credentials: ours.client(t, "")}, addr, hello).Close())
	}
	for name, tr := range map[string]Transport{
		"of another authority": {Credentials: theirs.client(t, "")},
		"plaintext":            {Credentials: insecure.NewCredentials()},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := tr.Dial(bounded(t), g.addr, redirect.Hello{Member: "m", Generation: 9})
			require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
		})
	}
}

// certified admits a supervisor under the name in its certificate alone.
func certified(ctx context.Context, h redirect.Hello) error {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return errors.New("nobody there")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return errors.New("no TLS")
	}
	if name := info.State.PeerCertificates[0].Subject.CommonName; name != string(h.Member) {
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
			server:      ServerConfig{Authorize: certified},
			credentials: ours.mutual(t, string(id)),
			peers:       ours.client(t, string(id)),
		})
	}
	f.meet(t)
	a, b := gates["a"], gates["b"]
	for i := range 6 {
		name := fmt.Sprint("m", i)
		tr := Transport{Credentials: ours.client(t, name)}
		hello := redirect.Hello{Member: ring.MemberID(name), Generation: 1, CanRedirect: true}
		verdict, stream, err := tr.Dial(bounded(t), a.addr, hello)
		require.NoError(t, err)
		if verdict.Outcome == redirect.Redirect {
			hello.Stay, hello.Hops, hello.Cap = true, 1, verdict.Cap
			verdict, stream, err = tr.Dial(bounded(t), verdict.Endpoint, hello)
			require.NoError(t, err)
		}
		require.Equal(t, redirect.Accept, verdict.Outcome)
		t.Cleanup(func() { _ = stream.Close() })
	}
	require.Equal(t, 6, a.Stats().Served+b.Stats().Served)
	require.Positive(t, b.Stats().Served)
	require.Zero(t, a.Stats().AskFailures)

	t.Run("nobody", func(t *testing.T) {
		_, _, err := Transport{Credentials: ours.client(t, "")}.Dial(bounded(t), a.addr, redirect.Hello{Member: "m0", Generation: 2})
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	})
	t.Run("under another's name", func(t *testing.T) {
		_, _, err := Transport{Credentials: ours.client(t, "mallory")}.Dial(bounded(t), a.addr, redirect.Hello{Member: "m0", Generation: 2})
		require.Equal(t, codes.PermissionDenied, status.Code(err), "%v", err)
	})
	t.Run("a peer without a certificate", func(t *testing.T) {
		p := &Peers{Credentials: ours.client(t, "")}
		defer func() { require.NoError(t, p.Close()) }()
		_, err := p.Ask(bounded(t), at("a", a.addr), someQuestion)
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	})
}
