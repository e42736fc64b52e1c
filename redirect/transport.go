// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"context"

	"github.com/evenring/evenring/placement"
)

// Transport is the one thing that a supervisor's side must bring: a way to
// open a stream. It must be safe for concurrent use: while a supervisor moves
// it dials the next gateway with the old stream still open.
type Transport interface {
	// Dial opens a stream to addr, says hello and waits for the verdict. ctx
	// bounds the time up to the verdict and not the life of the stream. The
	// stream is not nil exactly if the verdict is Accept and err is nil; after
	// any other verdict the transport has closed what it opened. An error
	// means that no verdict came. The hello's slices are the caller's: read
	// them only until Dial returns.
	Dial(ctx context.Context, addr string, hello Hello) (Verdict, Stream, error)
}

// Stream is an accepted stream, seen from the supervisor's side. What else it
// carries is the transport's affair.
type Stream interface {
	// Notice blocks until the gateway says something, and returns an error
	// once the stream has ended, whoever ended it. One goroutine calls it.
	Notice() (Notice, error)
	// Close says goodbye and ends the stream, so that the gateway knows that
	// nobody will come back for it; it unblocks Notice. It may be called at
	// any time, from any goroutine, more than once.
	Close() error
}

// Peers is the peer link's asking half: what a gateway must bring to ask
// another to keep a place before it sends somebody there. It must be safe for
// concurrent use.
type Peers interface {
	// Ask puts the question to the gateway at to.Endpoint, whose end calls
	// [Gateway.Asked]. ctx ends after Config.AskTimeout, and Ask must return
	// then: others wait for their turn to ask. An error means that no answer
	// came, and makes that gateway suspect.
	Ask(ctx context.Context, to placement.Gateway, q placement.Question) (placement.Answer, error)
}
