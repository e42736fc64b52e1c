// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evenring/evenring/internal/sim"
	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/ring"
)

// misuse is what is wrong with a command's arguments.
func misuse(format string, args ...any) error { return fmt.Errorf(format, args...) }

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, misuse("%q is no duration", text)
	}
	return d, nil
}

func count(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, misuse("%q is no number above 0", text)
	}
	return n, nil
}

// settings takes words like budget=1 from the others.
func settings(words []string, known ...string) (rest []string, values map[string]string, err error) {
	values = make(map[string]string)
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case !ok:
			rest = append(rest, word)
		case !slices.Contains(known, key):
			return nil, nil, misuse("there is no setting %q", key)
		default:
			values[key] = value
		}
	}
	return rest, values, nil
}

// gateway returns the process that was started last under an ID.
func (f *fleet) gateway(id string) (*sim.Gateway, error) {
	if g := f.w.Gateways[ring.GatewayID(id)]; g != nil {
		return g, nil
	}
	return nil, misuse("there is no gateway %q", id)
}

// alive returns one that lives.
func (f *fleet) alive(id string) (*sim.Gateway, error) {
	g, err := f.gateway(id)
	if err == nil && !g.Alive {
		err = misuse("gateway %q does not live", id)
	}
	return g, err
}

// gateways returns those that live of several, or all of them.
func (f *fleet) gateways(ids []string) ([]*sim.Gateway, error) {
	if len(ids) == 1 && ids[0] == "all" {
		return f.live(), nil
	}
	var all []*sim.Gateway
	for _, id := range ids {
		g, err := f.alive(id)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// members returns the IDs that words stand for, whether or not they have run.
func members(words []string) ([]ring.MemberID, error) {
	var all []ring.MemberID
	for _, word := range words {
		first, last, isRange := strings.Cut(word, "..")
		if !isRange {
			all = append(all, ring.MemberID(word))
			continue
		}
		from, err := strconv.Atoi(strings.TrimPrefix(first, "s"))
		to, err2 := strconv.Atoi(strings.TrimPrefix(last, "s"))
		if err != nil || err2 != nil || from > to {
			return nil, misuse("%q is no range of members", word)
		}
		for i := from; i <= to; i++ {
			all = append(all, ring.MemberID(fmt.Sprint("s", i)))
		}
	}
	return all, nil
}

// known returns members that have run.
func (f *fleet) known(words []string) ([]ring.MemberID, error) {
	all, err := members(words)
	for _, m := range all {
		if f.w.Supervisors[m] == nil {
			return nil, misuse("there is no gateway or supervisor %q", m)
		}
	}
	return all, err
}

// newcomers returns N new members, or those that are named.
func (f *fleet) newcomers(words []string) ([]ring.MemberID, error) {
	if len(words) == 1 && words[0] != "" && words[0][0] >= '0' && words[0][0] <= '9' {
		n, err := count(words[0])
		return f.numbered(n), err
	}
	return members(words)
}

// host is a machine that may stand still.
type host interface {
	Pause()
	Resume()
}

// hosts returns the gateways and supervisors that words stand for.
func (f *fleet) hosts(words []string) ([]host, error) {
	var all []host
	for _, word := range words {
		if g := f.w.Gateways[ring.GatewayID(word)]; g != nil {
			all = append(all, g)
			continue
		}
		some, err := f.known([]string{word})
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			all = append(all, f.w.Supervisors[m])
		}
	}
	return all, nil
}

// link takes A->B apart.
func link(word string) (from, to string, err error) {
	from, to, ok := strings.Cut(word, "->")
	if !ok || from == "" || to == "" {
		return "", "", misuse("%q is no link", word)
	}
	return from, to, nil
}

// change changes what is wrong with a link.
func (f *fleet) change(word string, how func(*sim.Link)) error {
	from, to, err := link(word)
	if err != nil {
		return err
	}
	if f.links[from] == nil {
		f.links[from] = make(map[string]sim.Link)
	}
	l := f.links[from][to]
	how(&l)
	f.links[from][to] = l
	return nil
}

// list reads what discovery says.
func list(words []string) roster.Event {
	switch {
	case len(words) == 1 && words[0] == "fails":
		return roster.DiscoveryFailed{}
	case len(words) == 1 && words[0] == "nobody":
		return roster.Discovered{}
	}
	var d roster.Discovered
	for _, word := range words {
		if word == "..." {
			d.Partial = true
		} else {
			d.Gateways = append(d.Gateways, ring.GatewayID(word))
		}
	}
	return d
}
