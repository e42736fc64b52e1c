// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/scrape"
)

// readRoster reads a gateway's /roster.
func readRoster(ctx context.Context, ops, query string) (page gatewayd.Roster, err error) {
	err = scrape.JSON(ctx, ops, "/roster"+query, &page)
	return page, err
}

// traffic is what one gateway has said over gossip.
type traffic struct {
	MessagesSent     int `json:"messages_sent"` // roster messages, once for each peer
	MessagesReceived int `json:"messages_received"`
	BytesSent        int `json:"bytes_sent"` // on streams
	BytesReceived    int `json:"bytes_received"`
	Streams          int `json:"streams"` // opened by it
	PacketsSent      int `json:"packets_sent"`
	PacketBytesSent  int `json:"packet_bytes_sent"`
}

func (t traffic) minus(o traffic) traffic {
	return traffic{
		MessagesSent: t.MessagesSent - o.MessagesSent, MessagesReceived: t.MessagesReceived - o.MessagesReceived,
		BytesSent: t.BytesSent - o.BytesSent, BytesReceived: t.BytesReceived - o.BytesReceived,
		Streams: t.Streams - o.Streams, PacketsSent: t.PacketsSent - o.PacketsSent, PacketBytesSent: t.PacketBytesSent - o.PacketBytesSent,
	}
}

// usage is what one gateway has said and used since it started.
type usage struct {
	traffic
	cpu float64 // seconds
}

func readUsage(ctx context.Context, ops string) (usage, error) {
	page, err := scrape.Get(ctx, ops)
	if err != nil {
		return usage{}, err
	}
	var u usage
	const sent, received = "sent", "received"
	for _, s := range []struct {
		name, direction string
		into            *int
	}{
		{"evenring_example_gossip_messages_total", sent, &u.MessagesSent},
		{"evenring_example_gossip_messages_total", received, &u.MessagesReceived},
		{"evenring_example_gossip_stream_bytes_total", sent, &u.BytesSent},
		{"evenring_example_gossip_stream_bytes_total", received, &u.BytesReceived},
		{"evenring_example_gossip_dials_total", "", &u.Streams},
		{"evenring_example_gossip_packets_total", "", &u.PacketsSent},
		{"evenring_example_gossip_packet_bytes_total", "", &u.PacketBytesSent},
	} {
		var labels []string
		if s.direction != "" {
			labels = []string{"direction", s.direction}
		}
		v, err := page.Sum(s.name, labels...)
		if err != nil {
			return usage{}, err
		}
		*s.into = int(v)
	}
	u.cpu, err = page.Sum(cpuSeconds)
	return u, err
}

// cpuSeconds is in the pages of gateways and of hosts.
const cpuSeconds = "process_cpu_seconds_total"

// each reads something of every gateway, all at the same time, in their order.
func each[T any](ctx context.Context, gateways []*gateway, read func(context.Context, *gateway) (T, error)) ([]T, error) {
	all := make([]T, len(gateways))
	group, ctx := errgroup.WithContext(ctx)
	for i, g := range gateways {
		group.Go(func() (err error) {
			if all[i], err = read(ctx, g); err != nil {
				return fmt.Errorf("%s: %w", g.id, err)
			}
			return nil
		})
	}
	return all, group.Wait()
}
