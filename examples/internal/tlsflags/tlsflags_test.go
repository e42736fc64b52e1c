// SPDX-License-Identifier: Apache-2.0

package tlsflags_test

import (
	"crypto/tls"
	"flag"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/tlsflags"
	"github.com/evenring/evenring/examples/internal/tlsflags/tlstest"
)

func TestRegister(t *testing.T) {
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	f := tlsflags.Register(fs)
	require.NoError(t, fs.Parse([]string{"-tls-cert", "c", "-tls-key", "k", "-tls-ca", "a", "-tls-name", "n"}))
	require.Equal(t, tlsflags.Flags{Cert: "c", Key: "k", CA: "a", Name: "n"}, *f)
}

func TestPlaintext(t *testing.T) {
	for name, configure := range map[string]func() (*tls.Config, error){
		"server": tlsflags.Flags{}.Server,
		"client": tlsflags.Flags{}.Client,
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := configure()
			require.NoError(t, err)
			require.Nil(t, cfg)
		})
	}
}

func TestFaultsNameTheFlag(t *testing.T) {
	good := tlstest.NewAuthority(t).Issue(t, "anna")
	rubbish := filepath.Join(t.TempDir(), "rubbish.pem")
	require.NoError(t, os.WriteFile(rubbish, []byte("rubbish"), 0o600))
	for name, row := range map[string]struct {
		flags  tlsflags.Flags
		server string // error
		client string // error; empty: none
	}{
		"no key":           {flags: tlsflags.Flags{Cert: good.Cert}, server: "-tls-cert needs -tls-key", client: "-tls-cert needs -tls-key"},
		"no certificate":   {flags: tlsflags.Flags{Key: good.Key}, server: "-tls-key needs -tls-cert", client: "-tls-key needs -tls-cert"},
		"nothing but CA":   {flags: tlsflags.Flags{CA: good.CA}, server: "-tls-ca and -tls-name need -tls-cert"},
		"nothing but name": {flags: tlsflags.Flags{Name: "gateways"}, server: "-tls-ca and -tls-name need -tls-cert"},
		"no such file":     {flags: tlsflags.Flags{Cert: "/nowhere", Key: good.Key}, server: "-tls-cert", client: "-tls-cert"},
		"no such CA":       {flags: tlsflags.Flags{Cert: good.Cert, Key: good.Key, CA: "/nowhere"}, server: "-tls-ca", client: "-tls-ca"},
		"a CA of rubbish":  {flags: tlsflags.Flags{Cert: good.Cert, Key: good.Key, CA: rubbish}, server: "-tls-ca", client: "-tls-ca"},
		"a key not its":    {flags: tlsflags.Flags{Cert: good.Cert, Key: tlstest.NewAuthority(t).Issue(t, "bea").Key}, server: "-tls-cert, -tls-key", client: "-tls-cert, -tls-key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := row.flags.Server()
			require.ErrorContains(t, err, row.server)
			_, err = row.flags.Client()
			if row.client == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.client)
			}
		})
	}
}

func TestHandshakes(t *testing.T) {
	ours, theirs := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	gateway := ours.Issue(t, "gateway")
	client, stranger := ours.Issue(t, "client"), theirs.Issue(t, "stranger")
	oneSided := gateway
	oneSided.CA = ""
	misled := client
	misled.Name = "elsewhere"
	impostor := stranger
	impostor.CA = gateway.CA
	for name, row := range map[string]struct {
		server, client tlsflags.Flags
		sees           string // the name in the client's certificate
		fails          bool
	}{
		"mutual":               {server: gateway, client: client, sees: "client"},
		"one-sided":            {server: oneSided, client: tlsflags.Flags{CA: gateway.CA}},
		"nobody":               {server: gateway, client: tlsflags.Flags{CA: gateway.CA}, fails: true},
		"of another authority": {server: gateway, client: impostor, fails: true},
		"a server's is not":    {server: gateway, client: stranger, fails: true},
		"for another name":     {server: gateway, client: misled, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := row.server.Server()
			require.NoError(t, err)
			client, err := row.client.Client()
			require.NoError(t, err)
			sees, err := shake(t, server, client)
			if row.fails {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.sees, sees)
		})
	}
}

func TestReplacedFilesCountFromTheNextHandshake(t *testing.T) {
	ours, theirs := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	gatewayFiles, clientFiles := ours.Issue(t, "gateway"), ours.Issue(t, "client")
	server, err := gatewayFiles.Server()
	require.NoError(t, err)
	client, err := clientFiles.Client()
	require.NoError(t, err)
	sees, err := shake(t, server, client)
	require.NoError(t, err)
	require.Equal(t, "client", sees)

	ours.Reissue(t, clientFiles, "client, renewed")
	sees, err = shake(t, server, client)
	require.NoError(t, err)
	require.Equal(t, "client, renewed", sees)

	theirs.Reissue(t, gatewayFiles, "gateway")
	_, err = shake(t, server, client)
	require.Error(t, err)
}

// shake has the two talk over loopback and returns whom the server saw.
func shake(t *testing.T, server, client *tls.Config) (sees string, err error) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	require.NoError(t, err)
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		served <- func() error {
			conn, err := l.Accept()
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := conn.(*tls.Conn).HandshakeContext(t.Context()); err != nil {
				return err
			}
			for _, cert := range conn.(*tls.Conn).ConnectionState().PeerCertificates {
				sees = cert.Subject.CommonName
			}
			return nil
		}()
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	client = client.Clone()
	if client.ServerName == "" {
		client.ServerName = "127.0.0.1"
	}
	client.NextProtos = []string{"h2"}
	dialled := tls.Client(conn, client).HandshakeContext(t.Context())
	if err := <-served; err != nil {
		return "", err
	}
	return sees, dialled
}
