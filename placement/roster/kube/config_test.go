// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/evenring/evenring/placement/roster/kube"
)

func TestConfigValidate(t *testing.T) {
	valid := kube.Config{Gateway: "gw-a", Service: "gateways"}
	require.NoError(t, valid.Validate())
	require.NoError(t, kube.Config{Gateway: "gw-a", Service: "gateways", Namespace: "edge", Port: "peer", Client: new(rest.Config)}.Validate())
	for _, row := range []struct {
		field  string
		change func(*kube.Config)
	}{
		{"Gateway is empty", func(c *kube.Config) { c.Gateway = "" }},
		{"Service is empty", func(c *kube.Config) { c.Service = "" }},
		{`Service is "edge/gateways"`, func(c *kube.Config) { c.Service = "edge/gateways" }},
		{`Namespace is "Edge"`, func(c *kube.Config) { c.Namespace = "Edge" }},
		{"Namespace is empty", func(c *kube.Config) { c.Client = new(rest.Config) }},
		{`Port is "7946:"`, func(c *kube.Config) { c.Port = "7946:" }},
		{"Settle is -1ns", func(c *kube.Config) { c.Settle = -1 }},
		{"Tolerance is -1ns", func(c *kube.Config) { c.Tolerance = -1 }},
	} {
		c := valid
		row.change(&c)
		require.ErrorContains(t, c.Validate(), "kube: Config."+row.field)
		_, err := kube.Start(c, nil)
		require.Error(t, err, row.field)
	}

	err := kube.Config{Settle: -1}.Validate()
	for _, field := range []string{"Gateway", "Service", "Settle"} {
		require.ErrorContains(t, err, "Config."+field)
	}
}
