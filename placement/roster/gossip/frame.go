// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/ring"
)

// What gateways send each other is a frame: a kind and its content. A kind
// that a newer gateway speaks is ignored.
const (
	frameMessages byte = 1 + iota // roster messages, each with its length before it
	frameGoodbye                  // the identity of a gateway that leaves
)

// frameSize is how much is sent at once, if that much is waiting: what has
// gathered while a frame was under way goes out as the next.
const frameSize = 1 << 20

// maxMessage is what memberlist takes, less the overhead of frame and encryption.
const maxMessage = 19 << 20

var errFrame = errors.New("gossip: malformed frame")

// eachMessage calls f with every roster message in a frame's content, up to
// where it is malformed.
func eachMessage(content []byte, f func(message []byte)) error {
	for len(content) > 0 {
		n, head := binary.Uvarint(content)
		if head <= 0 || n > uint64(len(content)-head) {
			return errFrame
		}
		content = content[head:]
		f(content[:n])
		content = content[n:]
	}
	return nil
}

func appendMessage(frame, message []byte) []byte {
	return append(binary.AppendUvarint(frame, uint64(len(message))), message...)
}

// identity is which start of which gateway a node is. It is the node's meta
// data, and makes its name.
type identity struct {
	gateway     ring.GatewayID
	incarnation placement.Incarnation
}

const identityVersion = 1

func (i identity) append(b []byte) []byte {
	b = append(b, identityVersion)
	b = binary.AppendUvarint(b, uint64(i.incarnation))
	return append(b, i.gateway...)
}

func parseIdentity(b []byte) (identity, error) {
	if len(b) == 0 || b[0] != identityVersion {
		return identity{}, errors.New("gossip: not a gateway")
	}
	incarnation, n := binary.Uvarint(b[1:])
	if n <= 0 || incarnation == 0 || len(b) == 1+n || len(b)-1-n > maxGatewayID {
		return identity{}, errors.New("gossip: malformed identity")
	}
	return identity{
		gateway:     ring.GatewayID(b[1+n:]),
		incarnation: placement.Incarnation(incarnation),
	}, nil
}

// name is the node's name among all: one start is never taken for another.
func (i identity) name() string {
	return string(i.gateway) + "#" + strconv.FormatUint(uint64(i.incarnation), 10)
}

func (i identity) String() string { return fmt.Sprintf("gateway %q, %d", i.gateway, i.incarnation) }
