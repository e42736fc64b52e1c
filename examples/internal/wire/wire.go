// SPDX-License-Identifier: Apache-2.0

// Package wire lets a program of the example fleet choose what its words travel
// over. A whole fleet, and whoever calls it, must choose the same.
package wire

import (
	"flag"
	"fmt"
)

// Kind is what words travel over. The zero value is [GRPC].
type Kind uint8

// The kinds.
const (
	GRPC      Kind = iota // package redirectgrpc
	WebSocket             // package redirectws: streams are WebSockets, and the rest is HTTP, on the same port
	kindCount
)

var kindText = [kindCount]string{"grpc", "websocket"}

// Register defines -transport. The result is set when fs has been parsed.
func Register(fs *flag.FlagSet) *Kind {
	k := new(Kind)
	fs.TextVar(k, "transport", GRPC, "what everything but gossip travels over, the same in the whole fleet: `grpc or websocket`")
	return k
}

// String returns the kind as the flag has it.
func (k Kind) String() string {
	if k < kindCount {
		return kindText[k]
	}
	return fmt.Sprintf("transport %d", uint8(k))
}

// MarshalText implements [encoding.TextMarshaler].
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *Kind) UnmarshalText(text []byte) error {
	for i, known := range kindText {
		if known == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no transport; there are grpc and websocket", text)
}

// Validate names a kind that there is not.
func (k Kind) Validate() error {
	if k >= kindCount {
		return fmt.Errorf("-transport: there is no %v", k)
	}
	return nil
}
