// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/evenring/evenring/ring"
)

// The defaults of [Config].
const (
	DefaultPort      = "gossip"
	DefaultSettle    = 3 * time.Second
	DefaultTolerance = 10 * time.Second
)

// Config says who this gateway is and which Service stands for all of them.
// The zero value of every field but Gateway and Service stands for its default.
type Config struct {
	// Gateway is this gateway's ID, which must be the name of its pod: required.
	Gateway ring.GatewayID
	// Service is the name of the Service that selects all gateways: required.
	Service string
	// Namespace is where the Service is. Empty: where this pod is, which it knows
	// from its service account; required with Client.
	Namespace string
	// Port is the name of the Service's port for gossip, for the addresses in
	// [Peer] and of [Discovery.Seeds]. Empty: "gossip".
	Port string
	// Client is how to reach the API server. nil: with the service account of
	// this pod. It is copied.
	Client *rest.Config

	// Settle is how long a gateway must be missing from the slices before the
	// list lacks it: 3 s by default. Kubernetes moves endpoints from slice to
	// slice, one slice at a time.
	Settle time.Duration
	// Tolerance is how long the API server may fail before the replica is told:
	// 10 s by default. Until there is a first list it is told at once.
	Tolerance time.Duration

	Logger *slog.Logger // must not block; nil: nothing is logged
}

// Validate reports every fault, each naming its field.
func (c Config) Validate() error {
	d := c.withDefaults()
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("kube: Config."+format, args...))
	}
	if c.Gateway == "" {
		fault("Gateway is empty")
	}
	for _, f := range [...]struct {
		field, value string
		required     bool
	}{
		{"Service", c.Service, true},
		{"Namespace", c.Namespace, c.Client != nil},
		{"Port", d.Port, true},
	} {
		switch faults := validation.IsDNS1123Label(f.value); {
		case f.value == "" && f.required:
			fault("%s is empty", f.field)
		case f.value != "" && len(faults) > 0:
			fault("%s is %q; %s", f.field, f.value, strings.Join(faults, "; "))
		}
	}
	for _, f := range [...]struct {
		field string
		value time.Duration
	}{
		{"Settle", c.Settle},
		{"Tolerance", c.Tolerance},
	} {
		if f.value < 0 {
			fault("%s is %v; it cannot be below 0", f.field, f.value)
		}
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Port = cmp.Or(c.Port, DefaultPort)
	c.Settle = cmp.Or(c.Settle, DefaultSettle)
	c.Tolerance = cmp.Or(c.Tolerance, DefaultTolerance)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
