// SPDX-License-Identifier: Apache-2.0

package carry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/carry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestRequests(t *testing.T) {
	var r carry.Requests
	first, one := r.Add()
	second, two := r.Add()
	require.Equal(t, []uint64{1, 2}, []uint64{first, second})

	lost := errors.New("lost")
	r.Answer(second, carry.Reply{Err: lost})
	r.Answer(second, carry.Reply{Payload: []byte("again")})
	r.Answer(99, carry.Reply{Payload: []byte("a stranger's")})
	require.Equal(t, carry.Reply{Err: lost}, <-two)
	require.Empty(t, one)
	r.Remove(second)

	idle := r.Close()
	require.Equal(t, idle, r.Close())
	require.False(t, over(idle), "the first is without an answer")
	id, _ := r.Add()
	require.Zero(t, id)
	r.Answer(first, carry.Reply{Payload: []byte("hi")})
	require.True(t, over(idle))
	r.Remove(first)
	require.Equal(t, carry.Reply{Payload: []byte("hi")}, <-one)

	var none carry.Requests
	require.True(t, over(none.Close()))
}

// answers works on requests until they are told how to end.
type answers struct {
	carry.Answers
	life    context.Context
	end     context.CancelFunc
	orders  chan error
	replies map[uint64]error
}

func newAnswers() *answers {
	a := &answers{orders: make(chan error), replies: make(map[uint64]error)}
	a.life, a.end = context.WithCancel(context.Background())
	a.Serve = func(ctx context.Context, payload []byte) ([]byte, error) {
		select {
		case err := <-a.orders:
			return payload, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return a
}

func (a *answers) start(id uint64) {
	ctx, cancel := context.WithCancel(a.life)
	a.Start(ctx, a.life, cancel, id, []byte("hi"), func(_ []byte, err error) { a.replies[id] = err })
	synctest.Wait()
}

func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers()
		defer a.end()
		bad := errors.New("bad")
		for id := range uint64(4) {
			a.start(id)
		}
		a.Cancel(99)
		a.Cancel(2)
		synctest.Wait()
		a.orders <- bad
		synctest.Wait()
		require.Len(t, a.replies, 2)
		require.ErrorIs(t, a.replies[2], context.Canceled, "nobody waits for it, and it is told all the same")

		idle := a.Close()
		require.Equal(t, idle, a.Close())
		a.start(4)
		require.Equal(t, redirect.ErrNotHere, a.replies[4])
		require.False(t, over(idle))
		left := a.GiveUp()
		require.Len(t, left, 2)
		require.Empty(t, a.GiveUp(), "once")
		a.Wait()
		require.True(t, over(idle))
		for _, id := range left {
			require.NotContains(t, a.replies, id, "given up")
		}
	})
}

// That a request is given up because the stream has ended is nobody's answer.
func TestStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers()
		a.start(1)
		a.end()
		a.Wait()
		require.Empty(t, a.replies)
		require.True(t, over(a.Close()))
	})
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers()
		defer a.end()
		a.Serve = nil
		a.start(1)
		require.Equal(t, redirect.ErrNotAnswering, a.replies[1])
	})
}

func TestTooManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers()
		defer a.Wait()
		defer a.end()
		for i := range uint64(carry.AtOnce) {
			a.start(i + 1)
		}
		require.Empty(t, a.replies)
		a.start(carry.AtOnce + 1)
		require.Equal(t, map[uint64]error{carry.AtOnce + 1: carry.ErrTooMany}, a.replies)
		a.orders <- nil
		synctest.Wait()
		a.start(carry.AtOnce + 1)
		require.Len(t, a.replies, 2, "there was room for it")
	})
}
