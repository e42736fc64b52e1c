// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/internal/script"
	"github.com/evenring/evenring/placement"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// TestScenarios plays the conversations under testdata/scenarios. The commands
// are the machine's events; the output is its actions and the state after them.
//
//	config [hops=N] [tries=N] [deny=GATEWAY]  first, if at all
//	jitter U                                  what every draw gives; 0.5 at first
//	accept|redirect|refuse|none|fail          of the dial in flight, or of gen=N
//	move|end|heartbeat|lost                   on the stream in use, or on gen=N
//	wait D                                    lets D pass, with a tick at each deadline
func TestScenarios(t *testing.T) {
	script.Run(t, "testdata/scenarios/*.txt", func(t *testing.T) func(string, []string) string {
		return newConversation(t).do
	})
}

// epoch is when the tests begin.
var epoch = time.Date(2024, time.March, 1, 0, 0, 0, 0, time.UTC)

const serviceAddr = "service"

// conversation is a machine and what is said to it.
type conversation struct {
	t       *testing.T
	cfg     Config
	machine *Machine
	now     time.Time
	jitter  float64
	out     strings.Builder
}

func newConversation(t *testing.T) *conversation {
	c := &conversation{t: t, now: epoch, jitter: 0.5}
	c.cfg = Config{Member: "s", Service: serviceAddr, Jitter: func() float64 { return c.jitter }}
	return c
}

func (c *conversation) do(command string, words []string) string {
	c.out.Reset()
	args := parseArgs(c.t, words)
	gen := placement.Generation(args.number("gen", 0))
	onDial, onStream := gen, gen
	if c.machine != nil && gen == 0 {
		onDial, onStream = c.machine.next.generation, c.machine.stream.generation
	}
	switch command {
	case "config":
		c.cfg.MaxHops = args.number("hops", 0)
		c.cfg.HomeTries = args.number("tries", 0)
		if denied := args.text("deny"); denied != "" {
			c.cfg.Allow = func(gateway ring.GatewayID, _ string) error {
				if gateway == ring.GatewayID(denied) {
					return errors.New("no peer")
				}
				return nil
			}
		}
	case "jitter":
		u, err := strconv.ParseFloat(words[0], 64)
		require.NoError(c.t, err)
		c.jitter = u
	case "wait":
		c.wait(args.duration(words[0]))
	case "start":
		m, err := New(c.cfg)
		require.NoError(c.t, err)
		c.machine = m
		c.step(Start{})
	case "stop":
		c.step(Stop{})
	case "fail":
		c.step(Failed{Generation: onDial})
	case "lost":
		c.step(Lost{onStream})
	case "none":
		c.step(Answered{Generation: onDial})
	case "accept", "redirect", "refuse":
		c.step(Answered{onDial, redirect.Verdict{
			Outcome:     redirect.ParseOutcome(command),
			Reason:      redirect.ParseReason(args.text("reason")),
			Gateway:     args.gateway(),
			Endpoint:    args.endpoint(),
			Incarnation: placement.Incarnation(args.number("inc", 1)),
			Cap:         args.number("cap", 0),
			Full:        args.gateways("full"),
			RetryAfter:  args.duration(args.text("retry")),
			Generation:  placement.Generation(args.number("above", 0)),
		}})
	case "move", "end", "heartbeat":
		kind := map[string]redirect.NoticeKind{"move": redirect.NoticeMove, "end": redirect.NoticeEnd, "heartbeat": redirect.NoticeHeartbeat}[command]
		c.step(Noticed{onStream, redirect.Notice{
			Kind:        kind,
			Reason:      redirect.ParseReason(args.text("reason")),
			Gateway:     args.gateway(),
			Endpoint:    args.endpoint(),
			Incarnation: placement.Incarnation(args.number("inc", 1)),
			Cap:         args.number("cap", 0),
		}})
	default:
		c.t.Fatalf("no such command: %s", command)
	}
	return c.out.String()
}

func (c *conversation) step(event Event) {
	for _, action := range c.machine.Step(c.now, event) {
		fmt.Fprintln(&c.out, show(action))
	}
	fmt.Fprint(&c.out, c.machine.State())
	if at, ok := c.machine.Deadline(); ok {
		fmt.Fprintf(&c.out, " until +%v", at.Sub(c.now))
	}
	fmt.Fprintln(&c.out)
}

func (c *conversation) wait(d time.Duration) {
	end := c.now.Add(d)
	for {
		at, ok := c.machine.Deadline()
		if !ok || at.After(end) {
			break
		}
		fmt.Fprintf(&c.out, "+%v\n", at.Sub(c.now))
		c.now = at
		c.step(Tick{})
	}
	c.now = end
}

// show renders an action on one line, leaving out what is zero.
func show(action Action) string {
	switch a := action.(type) {
	case Dial:
		var b strings.Builder
		fmt.Fprintf(&b, "dial %s gen=%d", a.Addr, a.Hello.Generation)
		if a.Hello.Stay {
			b.WriteString(" stay")
		}
		for _, f := range []struct {
			name  string
			value any
			shown bool
		}{
			{"hops", a.Hello.Hops, a.Hello.Hops != 0},
			{"cap", a.Hello.Cap, a.Hello.Cap != 0},
			{"home", a.Hello.Home, a.Hello.Home != ""},
			{"avoid", a.Hello.Avoid, len(a.Hello.Avoid) > 0},
			{"full", a.Hello.Full, len(a.Hello.Full) > 0},
			{"timeout", a.Timeout, true},
		} {
			if f.shown {
				fmt.Fprintf(&b, " %s=%v", f.name, f.value)
			}
		}
		if a.Passed != nil {
			fmt.Fprintf(&b, " (%v)", a.Passed)
		}
		return b.String()
	case Abandon:
		return fmt.Sprintf("abandon gen=%d", a.Generation)
	case Close:
		return fmt.Sprintf("close gen=%d", a.Generation)
	case Adopt:
		return fmt.Sprintf("adopt gen=%d home=%s@%s/%d", a.Generation, a.Home.Gateway, a.Home.Endpoint, a.Home.Incarnation)
	default:
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", a), "supervisor."))
	}
}

// arguments are the words after a command: key=value pairs, and the first bare
// word, a gateway.
type arguments struct {
	t     *testing.T
	bare  string
	named map[string]string
}

func parseArgs(t *testing.T, words []string) arguments {
	args := arguments{t: t, named: make(map[string]string)}
	for _, word := range words {
		key, value, named := strings.Cut(word, "=")
		if named {
			args.named[key] = value
		} else {
			args.bare = word
		}
	}
	return args
}

func (a arguments) text(key string) string { return a.named[key] }

func (a arguments) number(key string, missing int) int {
	text, ok := a.named[key]
	if !ok {
		return missing
	}
	n, err := strconv.Atoi(text)
	require.NoError(a.t, err, "%s of %v", key, slices.Sorted(maps.Keys(a.named)))
	return n
}

func (a arguments) duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	require.NoError(a.t, err)
	return d
}

func (a arguments) gateway() ring.GatewayID { return ring.GatewayID(a.bare) }

// endpoint is the gateway's name in lower case, unless another is given; "none" is none.
func (a arguments) endpoint() string {
	switch text := a.text("at"); text {
	case "":
		return strings.ToLower(a.bare)
	case "none":
		return ""
	default:
		return text
	}
}

func (a arguments) gateways(key string) []ring.GatewayID {
	var list []ring.GatewayID
	for id := range strings.SplitSeq(a.text(key), ",") {
		if id != "" {
			list = append(list, ring.GatewayID(id))
		}
	}
	return list
}
