// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/memberlist"
)

// SetKeys changes the keys of a running mesh, as if it had been started with
// [Config.Key] and [Config.AcceptKeys]. It keeps copies. A fleet changes its key
// in three steps, each at every gateway, one after the other, before the next
// begins. Nobody is lost meanwhile:
//
//	mesh.SetKeys(old, fresh) // the fresh one is accepted
//	mesh.SetKeys(fresh, old) // and is used
//	mesh.SetKeys(fresh)      // the old one is worth nothing any more
//
// Restarting every gateway with another Config three times does the same, and
// moves every supervisor three times.
//
// A mesh that was started without a key stays without one: gateways that have
// keys do not hear those that have none. Keys that are not in order change nothing.
func (m *Mesh) SetKeys(key []byte, accept ...[]byte) error {
	if faults := keyFaults(key, accept); len(faults) > 0 {
		return fmt.Errorf("gossip: %w", errors.Join(faults...))
	}
	if m.keys.ring == nil {
		return fmt.Errorf("%w: this gateway was started without Config.Key", ErrKey)
	}
	all := [][]byte{slices.Clone(key)}
	for _, k := range accept {
		if !holds(all, k) {
			all = append(all, slices.Clone(k))
		}
	}
	if err := m.keys.set(all); err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	m.cfg.Logger.Info("gossip: keys changed", "keys", len(all))
	return nil
}

// keys are what a mesh encrypts with and accepts.
type keys struct {
	mu   sync.Mutex          // held by who sets them
	ring *memberlist.Keyring // nil: there is no encryption
}

// set makes the ring hold these keys, each once, and encrypt with the first.
func (k *keys) set(keys [][]byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	ring := k.ring
	for _, key := range keys {
		if err := ring.AddKey(key); err != nil {
			return err
		}
	}
	if err := ring.UseKey(keys[0]); err != nil {
		return err
	}
	if len(ring.GetKeys()) == len(keys) {
		return nil
	}
	// RemoveKey moves what stands behind the key, in a slice that memberlist's
	// goroutines may be reading. So what has to go is brought to the end, where
	// nothing stands behind it.
	if held := ring.GetKeys(); slices.ContainsFunc(held[:len(keys)], func(key []byte) bool { return !holds(keys, key) }) {
		for _, key := range slices.Backward(keys) {
			if err := ring.UseKey(key); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Backward(ring.GetKeys()[len(keys):]) {
		if err := ring.RemoveKey(key); err != nil {
			return err
		}
	}
	return nil
}

func holds(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

// keyFaults returns what is wrong with keys, each by the name of its field.
func keyFaults(key []byte, accept [][]byte) []error {
	var faults []error
	check := func(name string, key []byte) {
		if memberlist.ValidateKey(key) != nil {
			faults = append(faults, fmt.Errorf("%s has %d bytes; it must have 16, 24 or 32", name, len(key)))
		}
	}
	check("Key", key)
	for i, k := range accept {
		check(fmt.Sprintf("AcceptKeys[%d]", i), k)
	}
	return faults
}

// explain says what an error of memberlist means for a gateway that was
// contacted. memberlist has texts only; one that is not known stays as it is.
func explain(err error) error {
	var several interface{ WrappedErrors() []error }
	if errors.As(err, &several) {
		err = errors.Join(several.WrappedErrors()...) // on one line if it is one
	}
	text := strings.ToLower(err.Error())
	switch {
	case strings.Contains(text, "no installed keys could decrypt"):
		return fmt.Errorf("%w: Config.Key and Config.AcceptKeys are others there: %w", ErrKey, err)
	case strings.Contains(text, "remote state is encrypted and encryption is not configured"):
		return fmt.Errorf("%w: Config.Key is set there, and not here: %w", ErrKey, err)
	case strings.Contains(text, "encryption is configured but remote state is not encrypted"):
		return fmt.Errorf("%w: Config.Key is set here, and not there: %w", ErrKey, err)
	case strings.HasSuffix(text, ": eof"), strings.Contains(text, "connection reset by peer"):
		return fmt.Errorf("it hung up, as one does whose Config.Label is another: %w", err)
	}
	return err
}
