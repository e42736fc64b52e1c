// SPDX-License-Identifier: Apache-2.0

package gatewayd

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenring/evenring/placement/roster/gossip"
)

// traffic makes metrics of what gossip carries. They say example in their
// names, since they are not of package metrics.
func traffic(read func() gossip.Stats) []prometheus.Collector {
	counter := func(name, help string, labels prometheus.Labels, of func(gossip.Stats) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "evenring_example_gossip_" + name, Help: help, ConstLabels: labels,
		}, func() float64 { return float64(of(read())) })
	}
	sent, received := prometheus.Labels{"direction": "sent"}, prometheus.Labels{"direction": "received"}
	const messages, bytes = "Roster messages, once for each peer.", "Bytes on streams between gateways."
	return []prometheus.Collector{
		counter("messages_total", messages, sent, func(s gossip.Stats) uint64 { return s.MessagesSent }),
		counter("messages_total", messages, received, func(s gossip.Stats) uint64 { return s.MessagesReceived }),
		counter("stream_bytes_total", bytes, sent, func(s gossip.Stats) uint64 { return s.StreamBytesSent }),
		counter("stream_bytes_total", bytes, received, func(s gossip.Stats) uint64 { return s.StreamBytesReceived }),
		counter("dials_total", "Streams opened to other gateways.", nil, func(s gossip.Stats) uint64 { return s.Dials }),
		counter("packets_total", "Packets sent to other gateways.", nil, func(s gossip.Stats) uint64 { return s.PacketsSent }),
		counter("packet_bytes_total", "Bytes in packets sent to other gateways.", nil, func(s gossip.Stats) uint64 { return s.PacketBytesSent }),
	}
}
