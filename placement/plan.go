// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"encoding"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/evenring/evenring/ring"
)

// Step is one step of a plan for [Predict]: one of [Stop], [Start], [Crash],
// [Join], [Arrive], [Leave] and [Settle]. Each is over, and everybody who it
// concerns attached again, before the next begins; what happens at once is one step.
// Its text is short, as in "stop gw-1", and is what [ParsePlan] reads; so it is in JSON.
type Step interface {
	fmt.Stringer
	encoding.TextMarshaler
	step()
}

// Stop drains these gateways, all at once: each hands everybody over, and they leave the
// fleet. Whom nobody can take waits until a gateway starts.
type Stop []ring.GatewayID

// Start starts gateways again, under the IDs that they had when they stopped
// or crashed: new incarnations that serve nobody. A gateway that the view
// shows as starting is ready from here on. Those who wait arrive once all have started.
type Start []ring.GatewayID

// Crash ends these gateways without a word, all at once. They are suspect from the first
// moment, whom they served is placed anew among the others, and they leave the fleet.
type Crash []ring.GatewayID

// Join starts gateways under IDs that the fleet has not had yet. Nobody moves
// because of it; those who wait arrive once all have started.
type Join []ring.GatewayID

// Arrive brings newcomers, one after the other. Their made-up IDs are
// "arrival/0", "arrival/1" and so on over the whole plan, without those that are taken.
type Arrive struct{ Count int }

// Leave ends streams cleanly. Who goes is decided by hash, so that they come
// from everywhere: the first in the order of their slots, and then of their IDs.
type Leave struct {
	Count int
	From  ring.GatewayID // only from there; empty: from anywhere, those who wait included
}

// Settle is package handoff/settle run on every gateway at once, as [View.Settle] has it. While there is
// [Unrest] it moves nobody.
type Settle struct {
	Budget int // moves of each gateway at most; 0: as many as it takes
}

func (Stop) step()   {}
func (Start) step()  {}
func (Crash) step()  {}
func (Join) step()   {}
func (Arrive) step() {}
func (Leave) step()  {}
func (Settle) step() {}

func named(verb string, ids []ring.GatewayID) string {
	words := []string{verb}
	for _, id := range ids {
		words = append(words, planWord(id))
	}
	return strings.Join(words, " ")
}

// planWord returns an ID as a plan has it: quoted if it would not be one word.
func planWord(id ring.GatewayID) string {
	if strings.ContainsFunc(string(id), func(r rune) bool { return r == ';' || r == ',' }) {
		return strconv.Quote(string(id))
	}
	return word(string(id))
}

// String returns the step's text, such as "stop gw-1 gw-2".
func (s Stop) String() string { return named("stop", s) }

// String returns the step's text, such as "start gw-1".
func (s Start) String() string { return named("start", s) }

// String returns the step's text, such as "crash gw-1".
func (s Crash) String() string { return named("crash", s) }

// String returns the step's text, such as "join gw-4".
func (s Join) String() string { return named("join", s) }

// String returns the step's text, such as "arrive 10".
func (s Arrive) String() string { return fmt.Sprint("arrive ", s.Count) }

// String returns the step's text, such as "leave 10" or "leave 10 from gw-1".
func (s Leave) String() string {
	if s.From == "" {
		return fmt.Sprint("leave ", s.Count)
	}
	return fmt.Sprintf("leave %d from %s", s.Count, planWord(s.From))
}

// String returns the step's text, "settle" or, with a budget, such as "settle 5".
func (s Settle) String() string {
	if s.Budget == 0 {
		return "settle"
	}
	return fmt.Sprint("settle ", s.Budget)
}

// MarshalText implements [encoding.TextMarshaler].
func (s Stop) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText implements [encoding.TextMarshaler].
func (s Start) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText implements [encoding.TextMarshaler].
func (s Crash) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText implements [encoding.TextMarshaler].
func (s Join) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText implements [encoding.TextMarshaler].
func (s Arrive) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText implements [encoding.TextMarshaler].
func (s Leave) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText implements [encoding.TextMarshaler].
func (s Settle) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Plan is steps in their order. Its text is theirs, with semicolons between
// them; so it is in JSON. The zero value is no step.
type Plan []Step

// String returns the plan's text, such as "stop gw-1; start gw-1".
func (p Plan) String() string {
	texts := make([]string, len(p))
	for i, s := range p {
		texts[i] = "nil" // is no step, as Predict says
		if s != nil {
			texts[i] = s.String()
		}
	}
	return strings.Join(texts, "; ")
}

// MarshalText implements [encoding.TextMarshaler].
func (p Plan) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler] by [ParsePlan].
func (p *Plan) UnmarshalText(text []byte) error {
	plan, err := ParsePlan(string(text))
	if err == nil {
		*p = plan
	}
	return err
}

// ParsePlan reads a plan. Steps have semicolons between them, and their words white space:
//
//	stop GATEWAY...           drain these, all at once; then they leave the fleet
//	start GATEWAY...          start them again, or those that are starting
//	crash GATEWAY...          these are lost without a word, all at once
//	join GATEWAY...           start gateways that the fleet has not had yet
//	arrive N                  newcomers, one after the other
//	leave N [from GATEWAY]    goodbyes, from everywhere or from there
//	settle [N]                even out; each gateway moves N at most
//
// N is a whole number in digits, for settle above 0. A GATEWAY that has a space, a comma, a
// semicolon, a quotation mark or anything unprintable in it, or is empty, is written as a Go string in double quotes. A step
// without words is none, so that a plan may end with a semicolon.
//
// An error names the step, counted from 1 without those that are none, and the word that is wrong. Whether there are
// such gateways is for [Predict] to say. The text of a plan is read as that plan.
func ParsePlan(text string) (Plan, error) {
	var plan Plan
	for rest := text; rest != ""; {
		words, after, err := cutStep(rest)
		if len(words) > 0 || err != nil {
			var s Step
			if err == nil {
				s, err = parseStep(words)
			}
			if err != nil {
				return nil, fmt.Errorf("placement: step %d (%s): %w", len(plan)+1, strings.Join(strings.Fields(rest[:len(rest)-len(after)]), " "), err)
			}
			plan = append(plan, s)
		}
		rest = strings.TrimPrefix(after, ";")
	}
	return plan, nil
}

// planToken is a word of a plan.
type planToken struct {
	text   string // as it is meant
	quoted bool
}

// cutStep reads the words of the first step, and returns what comes after
// them. At a fault that is still the semicolon after the step.
func cutStep(text string) (words []planToken, after string, err error) {
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" || text[0] == ';' {
			return words, text, err
		}
		if text[0] == '"' {
			quoted, fault := strconv.QuotedPrefix(text)
			if fault != nil {
				return nil, "", fmt.Errorf("%s is no string in quotes", text)
			}
			plain, _ := strconv.Unquote(quoted)
			words = append(words, planToken{plain, true})
			text = text[len(quoted):]
			if text != "" && !endsWord(rune(text[0])) && err == nil {
				err = fmt.Errorf("a space is missing after %s", quoted)
			}
			continue
		}
		end := strings.IndexFunc(text, func(r rune) bool { return r == ';' || r == '"' || unicode.IsSpace(r) })
		if end < 0 {
			end = len(text)
		}
		one := text[:end]
		switch {
		case err != nil:
		case strings.Contains(one, ","):
			err = fmt.Errorf("%q has a comma in it; there are spaces between gateways, and semicolons between steps", one)
		case word(one) != one:
			err = fmt.Errorf("%q takes quotes around it", one)
		case strings.HasPrefix(text[end:], `"`):
			err = fmt.Errorf("a space is missing after %q", one)
		}
		words = append(words, planToken{text: one})
		text = text[end:]
	}
}

func endsWord(r rune) bool { return r == ';' || unicode.IsSpace(r) }

// parseStep reads one step, of at least one word.
func parseStep(words []planToken) (Step, error) {
	verb, rest := words[0], words[1:]
	if verb.quoted {
		verb.text = ""
	}
	ids := make([]ring.GatewayID, len(rest))
	for i, w := range rest {
		ids[i] = ring.GatewayID(w.text)
	}
	switch verb.text {
	case "stop", "start", "crash", "join":
		if len(ids) == 0 {
			return nil, errNoGateway
		}
		return map[string]Step{"stop": Stop(ids), "start": Start(ids), "crash": Crash(ids), "join": Join(ids)}[verb.text], nil
	case "arrive":
		n, err := planCount(rest, 1)
		return Arrive{n}, err
	case "leave":
		if len(rest) < 2 {
			n, err := planCount(rest, 1)
			return Leave{Count: n}, err
		}
		if rest[1].quoted || rest[1].text != "from" {
			return nil, fmt.Errorf("%q stands where from should", rest[1].text)
		}
		if len(rest) == 2 || ids[2] == "" {
			return nil, errors.New("it names no gateway after from")
		}
		n, err := planCount(rest, 3)
		return Leave{Count: n, From: ids[2]}, err
	case "settle":
		if len(rest) == 0 {
			return Settle{}, nil
		}
		n, err := planCount(rest, 1)
		if err == nil && n == 0 {
			err = errors.New("a budget of 0 moves nobody; without one it makes as many moves as it takes")
		}
		return Settle{n}, err
	default:
		return nil, fmt.Errorf("%q is no step; there are stop, start, crash, join, arrive, leave and settle", words[0].text)
	}
}

var errNoGateway = errors.New("it names no gateway")

// planCount reads the number that comes first of so many words.
func planCount(rest []planToken, most int) (int, error) {
	if len(rest) == 0 {
		return 0, errors.New("it lacks a number")
	}
	if len(rest) > most {
		return 0, fmt.Errorf("%q is one word too many", rest[most].text)
	}
	n, err := strconv.Atoi(rest[0].text)
	if err != nil || rest[0].quoted || strings.ContainsAny(rest[0].text, "+-") {
		if errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%q is too large a number", rest[0].text)
		}
		return 0, fmt.Errorf("%q is no number of supervisors", rest[0].text)
	}
	return n, nil
}
