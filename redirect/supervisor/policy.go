// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/evenring/evenring/redirect/internal/endpoint"
	"github.com/evenring/evenring/ring"
)

// Policy says by name where a supervisor may be sent. Its method Allow fits
// [Config].Allow, and that of a session's config. The zero value allows nothing: a
// supervisor then stays where the Service takes it.
//
// An endpoint is a host and a port, and nothing else: whatever has a scheme, a
// user or a path is refused. Names are compared without regard to case or a
// final dot, and are not resolved: who may use a name is for DNS to say, and
// for the certificate that is presented under it. Prefixes are for endpoints
// that are literal addresses.
//
// Policy must not be changed once it is in use; it may be used concurrently.
type Policy struct {
	Hosts    []string       // names, or literal addresses without brackets
	Suffixes []string       // ".gw.example.com": every name below that one, not the name itself
	Prefixes []netip.Prefix // literal addresses in these networks
	Ports    []uint16       // empty: any port
}

// Validate reports every fault, each naming its field.
func (p Policy) Validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("supervisor: Policy."+format, args...))
	}
	for i, host := range p.Hosts {
		if _, _, err := policyHost(host); err != nil {
			fault("Hosts[%d]: %w", i, err)
		}
	}
	for i, suffix := range p.Suffixes {
		name, dotted := strings.CutPrefix(suffix, ".")
		if _, err := endpoint.ParseName(name); err != nil || !dotted {
			fault("Suffixes[%d] is %q; it must be a dot and a host name", i, suffix)
		}
	}
	for i, prefix := range p.Prefixes {
		switch {
		case !prefix.IsValid():
			fault("Prefixes[%d] is not set", i)
		case prefix != prefix.Masked():
			fault("Prefixes[%d] is %v; did you mean %v?", i, prefix, prefix.Masked())
		case prefix.Addr().Is4In6():
			fault("Prefixes[%d] is %v; write it as IPv4", i, prefix)
		}
	}
	if slices.Contains(p.Ports, 0) {
		fault("Ports contains 0")
	}
	return errors.Join(errs...)
}

// Allow returns nil if a supervisor may be sent to gateway at address, and
// otherwise a [*NotAllowedError].
func (p Policy) Allow(gateway ring.GatewayID, address string) error {
	e, err := endpoint.Parse(address)
	switch {
	case err != nil:
		return &NotAllowedError{gateway, address, err}
	case !p.allowsHost(e):
		return &NotAllowedError{gateway, address, fmt.Errorf("the policy does not have %s", e.Host())}
	case len(p.Ports) > 0 && !slices.Contains(p.Ports, e.Port):
		return &NotAllowedError{gateway, address, fmt.Errorf("the policy does not have port %d", e.Port)}
	}
	return nil
}

func (p Policy) allowsHost(e endpoint.Endpoint) bool {
	for _, host := range p.Hosts {
		if name, addr, err := policyHost(host); err == nil && name == e.Name && addr == e.Addr {
			return true
		}
	}
	if e.Name == "" {
		return slices.ContainsFunc(p.Prefixes, func(net netip.Prefix) bool { return net.Contains(e.Addr) })
	}
	for _, suffix := range p.Suffixes {
		name, dotted := strings.CutPrefix(suffix, ".")
		if below, err := endpoint.ParseName(name); err == nil && dotted && strings.HasSuffix(e.Name, "."+below) {
			return true
		}
	}
	return false
}

// policyHost reads an entry of Hosts: a name or an address.
func policyHost(text string) (name string, addr netip.Addr, err error) {
	if addr, err = endpoint.ParseAddr(text); err == nil {
		return "", addr, nil
	}
	name, err = endpoint.ParseName(text)
	return name, netip.Addr{}, err
}

// NotAllowedError is the error of [Policy.Allow].
type NotAllowedError struct {
	Gateway  ring.GatewayID
	Endpoint string
	Cause    error
}

// Error names the gateway, the endpoint and the cause.
func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("supervisor: gateway %q at %q is not allowed: %v", e.Gateway, e.Endpoint, e.Cause)
}

// Unwrap returns the cause.
func (e *NotAllowedError) Unwrap() error { return e.Cause }

// cause is err without the names, for an error that has them already.
func cause(err error) error {
	if e, ok := errors.AsType[*NotAllowedError](err); ok {
		return e.Cause
	}
	return err
}
