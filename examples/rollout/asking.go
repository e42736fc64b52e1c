// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/evenring/evenring/examples/internal/wire"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// askEverybody asks every supervisor through every gateway: at rest each must answer. It also makes
// the links from every gateway to all that serve somebody, so that what one has open does not depend on who had to ask whom.
func (f *fleet) askEverybody(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, echoTimeout, fmt.Errorf("not after %v", echoTimeout))
	defer cancel()
	members := slices.SortedFunc(maps.Keys(f.board.places()), byNumber)
	ids := f.ids()
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { errs[i] = f.askThrough(ctx, f.gateways[id], members) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// askThrough asks supervisors through a gateway.
func (f *fleet) askThrough(ctx context.Context, g *gateway, members []string) error {
	caller := wire.NewCaller(wire.CallerConfig{Kind: f.cfg.transport, Addr: *g.listen.Load()})
	defer func() { _ = caller.Close() }() // it carries nothing
	hello := []byte("are you there?")
	for _, member := range members {
		answer, err := caller.Call(ctx, redirect.Request{Member: ring.MemberID(member), Payload: hello})
		if err != nil {
			return fmt.Errorf("%s cannot be asked through %s: %w", member, g.id, err)
		}
		if !bytes.Equal(answer, hello) {
			return fmt.Errorf("%s answers %q through %s", member, answer, g.id)
		}
	}
	return nil
}
