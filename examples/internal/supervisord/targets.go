// SPDX-License-Identifier: Apache-2.0

package supervisord

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/evenring/evenring/redirect/supervisor"
)

// targets is a flag that may be repeated, each time with one or more parts of a policy.
type targets struct {
	policy *supervisor.Policy // nil: not given
	given  []string
}

func (t *targets) String() string { return strings.Join(t.given, ",") }

func (t *targets) Set(list string) error {
	if t.policy == nil {
		t.policy = new(supervisor.Policy)
	}
	for part := range strings.SplitSeq(list, ",") {
		if err := t.add(strings.TrimSpace(part)); err != nil {
			return err
		}
	}
	return nil
}

func (t *targets) add(part string) error {
	t.given = append(t.given, part)
	switch port, isPort := strings.CutPrefix(part, ":"); {
	case strings.Contains(part, "/"):
		network, err := netip.ParsePrefix(part)
		if err != nil {
			return fmt.Errorf("%q is no network", part)
		}
		t.policy.Prefixes = append(t.policy.Prefixes, network)
	case isPort && !strings.Contains(port, ":"):
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return fmt.Errorf("%q is no port", part)
		}
		t.policy.Ports = append(t.policy.Ports, uint16(n))
	case strings.HasPrefix(part, "."):
		t.policy.Suffixes = append(t.policy.Suffixes, part)
	default:
		t.policy.Hosts = append(t.policy.Hosts, part)
	}
	return nil
}
