// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/evenring/evenring/handoff"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/placement/roster/kube"
)

func (c *Config) kubeFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.KubeService, "kube-service", "", "Service in Kubernetes whose slices list all gateways and their addresses for gossip, as [`namespace/`]name, with a port named gossip; -id must be the pod's name; empty: gossip alone finds them, by -join")
	fs.StringVar(&c.Kubeconfig, "kubeconfig", "", "`file` that says how to reach Kubernetes for -kube-service; empty: as a pod does")
}

// kube is the configuration of the discovery. It lacks how to reach Kubernetes.
func (c Config) kube() kube.Config {
	k := kube.Config{Gateway: c.ID, Service: c.KubeService, Logger: c.Log}
	if namespace, name, ok := strings.Cut(c.KubeService, "/"); ok {
		k.Namespace, k.Service = namespace, name
	}
	return k
}

func (c Config) validateKube() error {
	if c.KubeService == "" {
		if c.Kubeconfig != "" {
			return errors.New("-kubeconfig is of no use without -kube-service")
		}
		return nil
	}
	k := c.kube()
	k.Gateway = cmp.Or(k.Gateway, "any") // -id has its own fault
	if err := k.Validate(); err != nil {
		return fmt.Errorf("-kube-service: %w", err)
	}
	return nil
}

// seeds returns where gossip finds others, as far as Kubernetes says: nil if it is not asked.
func (p *process) seeds() func(context.Context) ([]string, error) {
	if p.kube == nil {
		return nil
	}
	return p.kube.Seeds
}

// discover begins to read the list of gateways from Kubernetes, if there is to
// be one, and returns what the mesh is to feed.
func (p *process) discover() (roster.Replica, error) {
	if p.cfg.KubeService == "" {
		return p.gateway, nil
	}
	cfg := p.cfg.kube()
	if p.cfg.Kubeconfig != "" {
		loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: p.cfg.Kubeconfig}, nil)
		var err error
		if cfg.Client, err = loader.ClientConfig(); err == nil && cfg.Namespace == "" {
			cfg.Namespace, _, err = loader.Namespace()
		}
		if err != nil {
			return nil, fmt.Errorf("-kubeconfig: %w", err)
		}
	}
	var err error
	if p.kube, err = kube.Start(cfg, p.gateway); err != nil {
		return nil, fmt.Errorf("-kube-service: %w", err)
	}
	return kube.LinksOnly(p.gateway), nil
}

// DrainPlan returns the times that a drain of this gateway keeps to, for
// whoever sets the timer that kills it.
func (c Config) DrainPlan() (handoff.Plan, error) { return c.resolved().drain().Plan() }
