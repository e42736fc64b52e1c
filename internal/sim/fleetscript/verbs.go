// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"fmt"
	"time"
)

// verb is one command.
type verb struct {
	usage string // as in the package comment
	least int    // of arguments
	most  int    // -1: any number
	do    func(f *fleet, args []string) (string, error)
}

const many = -1

// verbs are all commands, by name.
var verbs = map[string]verb{
	"world":     {"world [seed=N] [no-asks] [proofs] [page=BYTES]", 0, many, (*fleet).world},
	"unwatched": {"unwatched", 0, 0, (*fleet).leave},
	"run":       {"run DURATION", 1, 1, (*fleet).run},
	"rest":      {"rest", 0, 0, (*fleet).rest},
	"clock":     {"clock GATEWAY|MEMBER DURATION", 2, 2, (*fleet).clock},

	"gateways": {"gateways GATEWAY... [at=ADDRESS]", 1, many, (*fleet).startGateways},
	"kill":     {"kill GATEWAY...", 1, many, (*fleet).killGateways},
	"crash":    {"crash GATEWAY...", 1, many, (*fleet).crash},
	"stop":     {"stop GATEWAY...", 1, many, (*fleet).stop},
	"drain":    {"drain GATEWAY [propagation=D] [window=D] [confirm=D]", 1, many, (*fleet).drain},
	"abort":    {"abort GATEWAY", 1, 1, (*fleet).abort},
	"gone":     {"gone GATEWAY", 1, 1, (*fleet).gone},
	"out":      {"out GATEWAY...", 1, many, (*fleet).out},
	"refresh":  {"refresh", 0, 0, (*fleet).refresh},
	"settle":   {"settle GATEWAY...|ALL [budget=N]", 1, many, (*fleet).settle},

	"arrive":  {"arrive N | arrive MEMBER...", 1, many, (*fleet).arrive},
	"at":      {"at GATEWAY N | at GATEWAY MEMBER...", 2, many, (*fleet).put},
	"restart": {"restart MEMBER... | restart GATEWAY... | restart everybody", 1, many, (*fleet).restart},
	"end":     {"end MEMBER...", 1, many, (*fleet).end},
	"steal":   {"steal MEMBER from MEMBER", 3, 3, (*fleet).steal},

	"cut":       {"cut X Y...", 2, many, (*fleet).cut},
	"partition": {"partition GATEWAY... | GATEWAY...", 3, many, (*fleet).partition},
	"heal":      {"heal", 0, 0, (*fleet).heal},
	"notice":    {"notice DURATION", 1, 1, (*fleet).notice},
	"lose":      {"lose LINK...", 1, many, (*fleet).lose},
	"hold":      {"hold LINK...", 1, many, (*fleet).hold},
	"delay":     {"delay LINK DURATION", 2, 2, (*fleet).delay},
	"release":   {"release LINK...", 1, many, (*fleet).release},
	"mute":      {"mute", 0, 0, (*fleet).mute},
	"garble":    {"garble LINK", 1, 1, (*fleet).garble},
	"lie":       {"lie LINK about GATEWAY", 3, 3, (*fleet).lie},
	"echo":      {"echo GATEWAY", 1, 1, (*fleet).echo},
	"pause":     {"pause GATEWAY...|MEMBER...", 1, many, (*fleet).pause},
	"resume":    {"resume GATEWAY...|MEMBER...", 1, many, (*fleet).resume},
	"discovery": {"discovery GATEWAY|ALL: GATEWAY... [...]", 2, many, (*fleet).discovery},

	"show":     {"show", 0, 0, (*fleet).show},
	"homes":    {"homes [GATEWAY]", 0, 1, (*fleet).homes},
	"view":     {"view GATEWAY", 1, 1, (*fleet).view},
	"ready":    {"ready GATEWAY...", 1, many, (*fleet).ready},
	"explain":  {"explain MEMBER GATEWAY", 2, 2, (*fleet).explain},
	"predict":  {"predict STEP; STEP...", 1, many, (*fleet).predict},
	"call":     {"call MEMBER at GATEWAY", 3, 3, (*fleet).call},
	"arrivals": {"arrivals", 0, 0, (*fleet).arrivals},
	"traffic":  {"traffic", 0, 0, (*fleet).traffic},
}

// do carries out one command. The error says how it is to be written, or which
// invariant was broken.
func (f *fleet) do(name string, args []string) (string, error) {
	v, ok := verbs[name]
	if !ok {
		return "", fmt.Errorf("fleetscript: there is no command %q", name)
	}
	if f.w == nil && name != "world" {
		return "", fmt.Errorf("fleetscript: %s: a script begins with: %s", name, verbs["world"].usage)
	}
	if n := len(args); n < v.least || v.most != many && n > v.most {
		return "", fmt.Errorf("fleetscript: %s: %d arguments; usage: %s", name, n, v.usage)
	}
	out, err := v.do(f, args)
	if err != nil {
		return "", fmt.Errorf("fleetscript: %s: %w; usage: %s", name, err, v.usage)
	}
	return out, f.fault()
}

// word looks for the word between two arguments.
func word(args []string, want string) error {
	if args[1] != want {
		return misuse("%q in the place of %q", args[1], want)
	}
	return nil
}

// took says how long something took, or that it has not come in that time.
func took(what string, d time.Duration, held bool) string {
	if !held {
		return fmt.Sprintf("not %s after %v", what, d)
	}
	return fmt.Sprintf("%s after %v", what, d)
}
