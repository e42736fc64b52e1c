// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/redirect/redirectgrpc"
	"github.com/evenring/evenring/redirect/supervisor"
	"github.com/evenring/evenring/ring"
)

const (
	// atOnce is how many supervisors of one host dial at the same time. On one machine that
	// all processes share, more would only wait for each other until they give up.
	atOnce = 100
	// readBuffer is small: a connection carries one quiet stream, and there are many.
	readBuffer = 4 << 10
)

// crowd is the supervisors of one host.
type crowd struct {
	transport redirect.Transport
	report    *report.Writer
}

func newCrowd(lan *network, out io.Writer) *crowd {
	return &crowd{
		transport: stayer{
			Transport: redirectgrpc.Transport{
				Credentials: insecure.NewCredentials(),
				Options:     []grpc.DialOption{grpc.WithReadBufferSize(readBuffer), grpc.WithContextDialer(lan.dial)},
			},
			dials: make(chan struct{}, atOnce),
		},
		report: report.NewWriter(out),
	}
}

// run hosts the supervisors with these numbers until ctx ends. They come a few at a
// time, the next one when one has been accepted.
func (c *crowd) run(ctx context.Context, first, end int) error {
	stop, err := c.serveUsage()
	if err != nil {
		return err
	}
	defer stop()
	running, ctx := errgroup.WithContext(ctx)
	room := make(chan struct{}, atOnce)
	for i := first; i < end; i++ {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return running.Wait()
		}
		running.Go(func() error {
			return c.one(ctx, ring.MemberID(fmt.Sprint("edge-", i)), func() { <-room })
		})
	}
	return running.Wait()
}

// one is one supervisor. arrived is called when it is accepted for the first time.
func (c *crowd) one(ctx context.Context, id ring.MemberID, arrived func()) error {
	return supervisor.Run(ctx, supervisor.Config{Member: id, Service: serviceAddress}, c.transport, supervisor.Hooks{
		Observe: func(o supervisor.Observation) {
			if o.Before.Connected() && !o.After.Connected() {
				c.report.Write(report.Event{Kind: report.Lost, At: o.At, Member: string(id)})
			}
			for _, action := range o.Actions {
				if adopt, ok := action.(supervisor.Adopt); ok {
					c.report.Write(report.Event{Kind: report.Attached, At: o.At, Member: string(id), Gateway: string(adopt.Home.Gateway)})
					if arrived != nil {
						arrived()
						arrived = nil
					}
				}
			}
		},
	})
}

// stayer asks every gateway to be kept: where supervisors belong is not
// measured here, and to ask for a place would take most of the time.
type stayer struct {
	redirect.Transport
	dials chan struct{} // under way
}

// Dial implements [redirect.Transport].
func (s stayer) Dial(ctx context.Context, addr string, hello redirect.Hello) (redirect.Verdict, redirect.Stream, error) {
	select {
	case s.dials <- struct{}{}:
		defer func() { <-s.dials }()
	case <-ctx.Done():
		return redirect.Verdict{}, nil, context.Cause(ctx)
	}
	hello.Stay = true
	return s.Transport.Dial(ctx, addr, hello)
}

// serveUsage serves /metrics, which tell what this process uses, and reports where.
func (c *crowd) serveUsage() (stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	c.report.Write(report.Event{Kind: report.Listening, Ops: listener.Addr().String()})
	return func() { _ = server.Close(); <-done }, nil
}
