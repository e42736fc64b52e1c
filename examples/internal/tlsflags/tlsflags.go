// SPDX-License-Identifier: Apache-2.0

// Package tlsflags makes TLS configurations, for both ends of a connection, from files
// that are named by flags.
//
// A certificate and its key are read anew for every handshake, and so is a server's CA:
// files that are replaced count from the next connection on. Whoever is
// connected stays so. A dialling end reads its CA once.
//
// With a CA, every certificate of that CA is let in, whoever it names. A service that
// tells its clients apart checks the certificate's name against what the client
// says of itself; see ServerConfig.Authorize in package redirectgrpc.
package tlsflags

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
)

// Flags are what the flags say. The zero value is plaintext.
type Flags struct {
	Cert string // file of the own certificate, and those between it and the CA, in PEM
	Key  string // file of its key, in PEM
	CA   string // file of the certificates that the other side's must come from, in PEM
	Name string // what a server's certificate must be for; empty: the host that is dialled
}

// Register defines -tls-cert, -tls-key, -tls-ca and -tls-name. The result is
// set when fs has been parsed.
func Register(fs *flag.FlagSet) *Flags {
	f := new(Flags)
	fs.StringVar(&f.Cert, "tls-cert", "", "`file` of the own certificate, PEM")
	fs.StringVar(&f.Key, "tls-key", "", "`file` of the own certificate's key, PEM")
	fs.StringVar(&f.CA, "tls-ca", "", "`file` of the CA that certificates of the other side must come from, PEM; a server then admits nobody without one")
	fs.StringVar(&f.Name, "tls-name", "", "`name` that the certificates of servers must be for; empty: the host that is dialled")
	return f
}

// Server returns the configuration of a server: mutual TLS with a CA, TLS
// without one, and nil, which is plaintext, without a certificate. Its error
// names the flag.
func (f Flags) Server() (*tls.Config, error) {
	if f.Cert == "" && f.Key == "" && f != (Flags{}) {
		return nil, errors.New("-tls-ca and -tls-name need -tls-cert and -tls-key")
	}
	cfg, err := f.server()
	if cfg == nil || err != nil {
		return nil, err
	}
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.server() }
	return cfg, nil
}

func (f Flags) server() (*tls.Config, error) {
	cert, err := f.certificate()
	if cert == nil || err != nil {
		return nil, err
	}
	cfg := &tls.Config{
		Certificates:           []tls.Certificate{*cert},
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true, // a new connection shows its certificate
	}
	if f.CA != "" {
		if cfg.ClientCAs, err = f.authority(); err != nil {
			return nil, err
		}
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return cfg, nil
}

// Client returns the configuration of a dialling end: with the CA's word for
// the server, or the system's without one, and its own certificate, if there is
// one. It returns nil, which is plaintext, if no flag is given. Its error names
// the flag.
func (f Flags) Client() (*tls.Config, error) {
	if f == (Flags{}) {
		return nil, nil
	}
	cert, err := f.certificate()
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{ServerName: f.Name, MinVersion: tls.VersionTLS13}
	if cert != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return f.certificate() }
	}
	if f.CA != "" {
		if cfg.RootCAs, err = f.authority(); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// certificate reads the own certificate; nil: there is none.
func (f Flags) certificate() (*tls.Certificate, error) {
	switch {
	case f.Cert == "" && f.Key == "":
		return nil, nil
	case f.Cert == "":
		return nil, errors.New("-tls-key needs -tls-cert")
	case f.Key == "":
		return nil, errors.New("-tls-cert needs -tls-key")
	}
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("-tls-cert, -tls-key: %w", err)
	}
	return &cert, nil
}

func (f Flags) authority() (*x509.CertPool, error) {
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("-tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("-tls-ca: %s holds no certificate", f.CA)
	}
	return pool, nil
}
