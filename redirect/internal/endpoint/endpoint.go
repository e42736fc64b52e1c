// SPDX-License-Identifier: Apache-2.0

// Package endpoint reads the addresses that gateways give of themselves.
package endpoint

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Endpoint is an address that one TCP connection can be made to, and nothing
// else: no scheme, no path, no user.
type Endpoint struct {
	Name string     // of the host, in lower case and without a final dot; empty: Addr is set
	Addr netip.Addr // a literal address, without a zone; an IPv4 address is never written as an IPv6 one
	Port uint16
}

// Host returns the name or the address, without brackets.
func (e Endpoint) Host() string {
	if e.Name != "" {
		return e.Name
	}
	return e.Addr.String()
}

// Parse reads "name:port", "1.2.3.4:port" or "[::1]:port". A name is made of
// letters, digits, hyphens and underscores, with dots between its labels; one
// that a resolver could take for a number is none. Its error does not repeat text.
func Parse(text string) (Endpoint, error) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return Endpoint{}, errors.New("it has no port")
	}
	host, port := text[:i], text[i+1:]
	inner, opened := strings.CutPrefix(host, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	switch {
	case host == "":
		return Endpoint{}, errors.New("it has no host")
	case opened != closed, !opened && strings.Contains(host, ":"):
		return Endpoint{}, errors.New(`it is not of the form "host:port"`)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return Endpoint{}, fmt.Errorf("the port is %q; it must be from 1 to 65535", port)
	}
	e := Endpoint{Port: uint16(n)}
	if opened {
		if e.Addr, err = ParseAddr(inner); err == nil && !strings.Contains(inner, ":") {
			err = fmt.Errorf("%q is no IPv6 address", host)
		}
		return e, err
	}
	if e.Addr, err = ParseAddr(host); err != nil {
		e.Name, err = ParseName(host)
	}
	return e, err
}

// ParseAddr reads a literal address, without brackets.
func ParseAddr(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("%q is no address", text)
	case addr.Zone() != "":
		return netip.Addr{}, fmt.Errorf("%q has a zone, which means nothing on another host", text)
	}
	return addr.Unmap(), nil
}

// ParseName reads a host's name, and returns it in lower case and without a final dot.
func ParseName(text string) (string, error) {
	name := strings.TrimSuffix(text, ".")
	bad := fmt.Errorf("%q is no host name", text)
	if len(name) > 253 {
		return "", bad
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", bad
		}
		last = label
	}
	for _, c := range []byte(name) {
		if !letter(c) && !digit(c) && c != '-' && c != '_' && c != '.' {
			return "", bad
		}
	}
	if number(last) {
		return "", bad
	}
	return strings.ToLower(name), nil
}

// number reports whether a last label makes an address of a name: "127.1", "0x7f.1".
func number(label string) bool {
	if hex, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func digit(c byte) bool  { return '0' <= c && c <= '9' }
