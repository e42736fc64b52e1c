// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"flag"
	"fmt"

	"github.com/evenring/evenring/redirect"
)

// proofFlags defines -proof-key, whose value it returns, and -proof-required.
// What the former says is read later: whoever complains of a flag repeats it, and it is a secret.
func (c *Config) proofFlags(fs *flag.FlagSet) *string {
	fs.BoolVar(&c.ProofRequired, "proof-required", false, "place a supervisor that asks to stay without a proof of -proof-key as a newcomer")
	return fs.String("proof-key", "", "`secrets` that all gateways share, one or two with a comma between them, each at least 32 bytes in hex or base64; or a file with them; the first signs that a supervisor was sent to a gateway, both are accepted; empty: whoever asks to stay may")
}

// proofKeys reads what -proof-key says.
func (c *Config) proofKeys(text string) (err error) {
	c.ProofKeys, err = secrets(text, "at least 32", func(n int) bool { return n >= 32 })
	if err != nil {
		return fmt.Errorf("-proof-key: %w", err)
	}
	return nil
}

// proofs is how the gateway proves stays.
func (c Config) proofs() redirect.Proofs {
	return redirect.Proofs{Keys: c.ProofKeys, Required: c.ProofRequired}
}
