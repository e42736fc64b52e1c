// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBlame(t *testing.T) {
	a, b, c := mover{"a", "gw-1", "gw-2"}, mover{"b", "gw-2", "gw-1"}, mover{"c", "gw-1", "gw-3"}
	var first, host blame
	first.gateway("gw-1")
	host.member("b", "x")
	for _, row := range []struct {
		name   string
		blame  blame
		movers []mover
		want   []string
	}{
		{"nobody moved", blame{}, nil, nil},
		{"nobody was struck", blame{}, []mover{a}, []string{"a moved from gw-1 to gw-2, and nothing had happened to it"}},
		{"those whom it served", first, []mover{a, c}, nil},
		{"somebody of another one", first, []mover{a, b}, []string{"b moved from gw-2 to gw-1, and nothing had happened to it"}},
		{"those who lived there", host, []mover{b}, nil},
		{"somebody of another host", host, []mover{b, c}, []string{"c moved from gw-1 to gw-3, and nothing had happened to it"}},
		{"everybody", blame{all: true}, []mover{a, b, c}, nil},
		{"many", blame{}, []mover{a, b, c, a}, []string{
			"a moved from gw-1 to gw-2, and nothing had happened to it", "b moved from gw-2 to gw-1, and nothing had happened to it",
			"c moved from gw-1 to gw-3, and nothing had happened to it", "and perhaps more of the 4 that moved",
		}},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.blame.judge(row.movers)) })
	}
}

func TestBoardMovers(t *testing.T) {
	b := newBoard()
	tell(b, expects("edge-10", 0), expects("edge-9", 0), expects("edge-1", 0), expects("edge-2", 0),
		attached("edge-10", "gw-1", 0), attached("edge-9", "gw-2", 0), attached("edge-1", "gw-1", 0), begins,
		attached("edge-10", "gw-2", 0), attached("edge-9", "gw-1", 0), attached("edge-9", "gw-2", 0),
		lost("edge-1"), attached("edge-1", "gw-1", 5), attached("edge-2", "gw-3", 0))
	require.Equal(t, []mover{{"edge-9", "gw-2", "gw-2"}, {"edge-10", "gw-1", "gw-2"}}, b.movers(),
		"one that went and came back has moved; one that lost its stream and came back has not, nor a newcomer")
	require.Equal(t, map[string]string{"edge-1": "gw-1", "edge-2": "gw-3", "edge-9": "gw-2", "edge-10": "gw-2"}, b.places())
	tell(b, begins)
	require.Empty(t, b.movers())
	tell(b, lost("edge-1"))
	require.Empty(t, b.places()["edge-1"])
}
