// SPDX-License-Identifier: Apache-2.0

// Package tlstest issues certificates for tests.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/evenring/evenring/examples/internal/tlsflags"
)

// Authority issues certificates and writes them into files.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

// NewAuthority makes an authority, whose files go with the test.
func NewAuthority(t testing.TB) Authority {
	t.Helper()
	key := newKey(t)
	cert := sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, key, key)
	file := filepath.Join(t.TempDir(), "ca.pem")
	write(t, file, "CERTIFICATE", cert.Raw)
	return Authority{cert: cert, key: key, file: file}
}

// Issue makes a certificate for name, good for loopback and for both ends, and
// returns the flags of somebody who has it and trusts the authority.
func (a Authority) Issue(t testing.TB, name string) tlsflags.Flags {
	t.Helper()
	dir := t.TempDir()
	f := tlsflags.Flags{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: a.file}
	a.Reissue(t, f, name)
	return f
}

// Reissue replaces the certificate in the files of f.
func (a Authority) Reissue(t testing.TB, f tlsflags.Flags, name string) {
	t.Helper()
	key := newKey(t)
	cert := sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.Cert, "CERTIFICATE", cert.Raw)
	write(t, f.Key, "PRIVATE KEY", der)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a certificate from template, for key. A nil parent: it signs itself.
func sign(t testing.TB, template, parent *x509.Certificate, key, with *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotAfter = time.Now().Add(time.Hour)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), with)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func write(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
