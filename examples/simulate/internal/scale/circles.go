// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"iter"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/evenring/evenring/ring"
)

// forge builds the rings of a plan ahead of it, one on each processor: with a thousand gateways a ring takes longer than
// to hand a gateway's supervisors over.
type forge struct {
	ctx     context.Context
	cancel  context.CancelFunc
	workers errgroup.Group
	made    chan chan forged
}

type forged struct {
	ring *ring.Ring
	err  error
}

// ahead is how many rings are kept at most until they are used.
const ahead = 64

func newForge(ctx context.Context, circles iter.Seq[[]ring.GatewayID]) *forge {
	f := &forge{made: make(chan chan forged, ahead)}
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.workers.SetLimit(runtime.GOMAXPROCS(0) + 1) // one of them hands the work out
	f.workers.Go(func() error {
		for ids := range circles {
			one := make(chan forged, 1)
			select {
			case f.made <- one:
			case <-f.ctx.Done():
				return nil
			}
			f.workers.Go(func() error {
				r, err := ring.New(ring.Config{}, ids...)
				one <- forged{r, err}
				return nil
			})
		}
		return nil
	})
	return f
}

// next returns the next ring.
func (f *forge) next() (*ring.Ring, error) {
	select {
	case one := <-f.made:
		out := <-one
		return out.ring, out.err
	case <-f.ctx.Done():
		return nil, context.Cause(f.ctx)
	}
}

// close ends the forge, and waits for what it is about.
func (f *forge) close() {
	f.cancel()
	_ = f.workers.Wait() // nobody fails
}
