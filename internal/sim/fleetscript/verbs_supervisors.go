// SPDX-License-Identifier: Apache-2.0

package fleetscript

import (
	"time"

	"github.com/evenring/evenring/ring"
)

func (f *fleet) arrive(args []string) (string, error) {
	all, err := f.newcomers(args)
	if err == nil {
		f.start(all, nil)
	}
	return "", err
}

func (f *fleet) put(args []string) (string, error) {
	g, err := f.alive(args[0])
	if err != nil {
		return "", err
	}
	all, err := f.newcomers(args[1:])
	if err != nil {
		return "", err
	}
	f.kill(all)
	f.start(all, g)
	f.w.Run(time.Second)
	return "", nil
}

func (f *fleet) restart(args []string) (string, error) {
	var all []ring.MemberID
	for _, arg := range args {
		switch g := f.w.Gateways[ring.GatewayID(arg)]; {
		case arg == "everybody":
			all = append(all, f.w.MemberIDs()...)
		case g != nil:
			for _, s := range g.Admission.Supervisors() {
				all = append(all, s.Member)
			}
		default:
			some, err := f.known([]string{arg})
			if err != nil {
				return "", err
			}
			all = append(all, some...)
		}
	}
	f.kill(all)
	f.start(all, nil)
	return "", nil
}

func (f *fleet) end(args []string) (string, error) {
	all, err := f.known(args)
	if err == nil {
		f.kill(all)
	}
	return "", err
}

func (f *fleet) steal(args []string) (string, error) {
	if err := word(args, "from"); err != nil {
		return "", err
	}
	thief, victim := ring.MemberID(args[0]), ring.MemberID(args[2])
	if len(f.shown[victim]) == 0 {
		return "", misuse("%s has not shown a proof yet", victim)
	}
	f.stolen[thief] = victim
	return "", nil
}
