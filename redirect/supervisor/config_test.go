// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfigValidate(t *testing.T) {
	valid := Config{Member: "s", Service: serviceAddr}
	for _, test := range []struct {
		name   string
		change func(*Config)
		faults []string
	}{
		{"zero", func(c *Config) { *c = Config{} }, []string{"Config.Member", "Config.Service"}},
		{"generation", func(c *Config) { c.Generation = generationLimit }, []string{"Config.Generation"}},
		{"counts", func(c *Config) { c.HomeTries, c.MaxHops = -1, -1 }, []string{"Config.HomeTries", "Config.MaxHops"}},
		{"times", func(c *Config) { c.HomePatience, c.DialTimeout, c.MoveDelay, c.AvoidFor = -1, -1, -1, -1 },
			[]string{"Config.HomePatience", "Config.DialTimeout", "Config.MoveDelay", "Config.AvoidFor"}},
		{"backoff", func(c *Config) { c.BackoffMin = time.Hour }, []string{"Config.BackoffMax is 30s", "1h0m0s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := valid
			test.change(&cfg)
			m, err := New(cfg)
			require.Nil(t, m)
			require.Equal(t, cfg.Validate(), err)
			for _, fault := range test.faults {
				require.ErrorContains(t, err, fault)
			}
		})
	}
	require.NoError(t, valid.Validate())
}

func TestConfigDefaults(t *testing.T) {
	m, err := New(Config{Member: "s", Service: serviceAddr})
	require.NoError(t, err)
	require.Equal(t, Config{
		Member: "s", Service: serviceAddr, Generation: 1,
		HomeTries: 2, HomePatience: 5 * time.Second,
		BackoffMin: time.Second, BackoffMax: 30 * time.Second,
		DialTimeout: 10 * time.Second, MaxHops: 2, MoveDelay: time.Second, AvoidFor: 30 * time.Second,
	}, m.cfg)
}

func TestStateText(t *testing.T) {
	for state, text := range stateText {
		require.Equal(t, text, State(state).String())
	}
	require.Equal(t, "unknown", State(200).String())
}
