// SPDX-License-Identifier: Apache-2.0

package redirectws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/evenring/evenring/redirect"
)

// The defaults of [ServerConfig].
const (
	DefaultHelloTimeout = 10 * time.Second
	DefaultHeartbeat    = 10 * time.Second
	DefaultServerLinger = 5 * time.Second
)

// ServerConfig says how a gateway's end treats its streams. The zero value of
// every field is its default.
type ServerConfig struct {
	// HelloTimeout is how long a stream may be open without a hello. 0: 10 s.
	HelloTimeout time.Duration

	// Heartbeat is the time between two heartbeats on a stream. They tell the
	// supervisor which incarnation it is attached to, even through a proxy that
	// hides a restart. 0: 10 s.
	Heartbeat time.Duration

	// OriginPatterns are the hosts from whose pages browsers may open streams, as
	// [path.Match] has them; with a scheme, such as "https://*.example.com", they
	// are matched with that. The gateway's own host is always allowed, and so is
	// whoever is no browser. nil: nobody else.
	OriginPatterns []string

	// Authorize decides whether whoever opened the stream may say this hello.
	// [RequestFrom] has the request that opened it: the headers, the certificate.
	// An error ends the stream with code 1008 and the error's text. nil: everybody
	// may.
	Authorize func(context.Context, redirect.Hello) error

	// Serve is the application on an accepted stream, called once for each. When
	// it returns, what it has sent is delivered, and the stream ends: in good order,
	// or with a [github.com/coder/websocket.CloseError] as it is, or with code 1011
	// and the text of any other error; the supervisor will redial. It must return
	// soon after its context has ended: the stream does not end before. The context
	// ends when the gateway ends the stream, and when the stream is lost or closed;
	// after a goodbye it has about a second, which [ServerStream.Recv] tells at once.
	// nil: payloads are thrown away.
	Serve func(context.Context, *ServerStream) error

	// Linger is how long a stream that the gateway or its application ends is kept
	// for the answers to the requests on it. 0: 5 s.
	Linger time.Duration

	// Calls lets callers reach supervisors and sessions through this gateway,
	// wherever those are. nil: nobody can call here, and no other gateway can
	// forward a call here.
	Calls *CallConfig
}

// Validate reports every fault, each naming its field.
func (c ServerConfig) Validate() error {
	var errs []error
	if c.HelloTimeout < 0 {
		errs = append(errs, fmt.Errorf("redirectws: ServerConfig.HelloTimeout is %v; it cannot be below 0", c.HelloTimeout))
	}
	if c.Heartbeat < 0 {
		errs = append(errs, fmt.Errorf("redirectws: ServerConfig.Heartbeat is %v; it cannot be below 0", c.Heartbeat))
	}
	if c.Linger < 0 {
		errs = append(errs, fmt.Errorf("redirectws: ServerConfig.Linger is %v; it cannot be below 0", c.Linger))
	}
	for i, pattern := range c.OriginPatterns {
		if _, err := path.Match(pattern, ""); err != nil {
			errs = append(errs, fmt.Errorf("redirectws: ServerConfig.OriginPatterns[%d] is %q: %w", i, pattern, err))
		}
	}
	if c.Calls != nil {
		if err := c.Calls.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("redirectws: ServerConfig.Calls: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (c ServerConfig) resolved() ServerConfig {
	c.HelloTimeout = cmp.Or(c.HelloTimeout, DefaultHelloTimeout)
	c.Heartbeat = cmp.Or(c.Heartbeat, DefaultHeartbeat)
	c.Linger = cmp.Or(c.Linger, DefaultServerLinger)
	if c.Calls != nil {
		calls := c.Calls.resolved()
		c.Calls = &calls
	}
	return c
}
