// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/evenring/evenring/examples/internal/child"
)

// kind is one sort of act. do strikes, and gives back whatever it has taken.
type kind struct {
	name        string
	gateways    int           // how many it strikes
	hosts       int           // processes with supervisors that it strikes
	least, most time.Duration // how long it lasts, if it does
	often       int           // times in one deal; 0: once
	loses       bool          // a request may go without an answer
	smooth      bool          // nobody is without a stream, and nobody moves twice
	do          func(*havoc, context.Context, act) error
}

// How long a process is paused, or a connection refused. Silence is found after keepalive, a
// gateway is suspected after some eight probes of a second each, and forgotten after timeToLive.
const (
	blip      = 500 * time.Millisecond
	unnoticed = 4 * time.Second
	noticed   = keepalive + 2*time.Second
	suspected = 27 * time.Second
	forgotten = timeToLive + 3*time.Second
	overdue   = timeToLive + heartbeat + 2*time.Second
)

var kinds = []kind{
	{name: "kill-gateway", gateways: 1, loses: true, do: (*havoc).killAndReplace},
	{name: "kill-two-gateways", gateways: 2, loses: true, do: (*havoc).killAndReplace},
	{name: "kill-hosts", hosts: 3, loses: true, do: (*havoc).killAndReplace},
	{name: "kill-gateway-and-hosts", gateways: 1, hosts: 3, loses: true, do: (*havoc).killAndReplace},
	{name: "kill-all-gateways", gateways: every, loses: true, do: (*havoc).killAll},
	{name: "kill-all-hosts", hosts: every, loses: true, do: (*havoc).killAll},
	{name: "kill-everything", gateways: every, hosts: every, loses: true, do: (*havoc).killAll},

	{name: "drain-after-replacement", gateways: 1, smooth: true, do: (*havoc).replaceAndDrain},
	{name: "drain-before-replacement", gateways: 1, smooth: true, do: (*havoc).drainAndReplace},
	{name: "drain-two-gateways", gateways: 2, smooth: true, do: (*havoc).drainAndReplace},
	{name: "stop-hosts", hosts: 3, loses: true, do: (*havoc).stopAll},
	{name: "stop-all-gateways", gateways: every, loses: true, do: (*havoc).stopAll},
	{name: "stop-everything", gateways: every, hosts: every, loses: true, do: (*havoc).stopAll},
	{name: "kill-during-drain", gateways: 2, loses: true, do: (*havoc).killDuringDrain},

	{name: "pause-gateway-briefly", gateways: 1, least: blip, most: unnoticed, loses: true, do: (*havoc).pauseBriefly},
	{name: "pause-hosts-briefly", hosts: 3, least: blip, most: unnoticed, loses: true, do: (*havoc).pauseBriefly},
	{name: "pause-gateway-until-lost", gateways: 1, least: noticed, most: suspected, loses: true, do: (*havoc).pauseLong},
	{name: "pause-gateway-until-forgotten", gateways: 1, least: forgotten, most: overdue, loses: true, do: (*havoc).pauseLong},
	{name: "pause-two-gateways-until-forgotten", gateways: 2, least: forgotten, most: overdue, loses: true, do: (*havoc).pauseLong},
	{name: "pause-hosts-until-lost", hosts: 3, least: noticed, most: overdue, loses: true, do: (*havoc).pauseLong},
	{name: "pause-during-crash", gateways: 2, least: noticed, most: overdue, loses: true, do: (*havoc).pauseDuringCrash},

	{name: "cut-some", loses: true, do: (*havoc).cutSome},
	{name: "cut-all", loses: true, do: (*havoc).cutAll},
	{name: "cut-link", gateways: 1, least: blip, most: 12 * time.Second, loses: true, do: (*havoc).cutLink},
	{name: "service-refuses", least: blip, most: 12 * time.Second, loses: true, do: (*havoc).serviceRefuses},
	{name: "service-swallows", least: blip, most: 12 * time.Second, loses: true, do: (*havoc).serviceSwallows},
	{name: "crash-without-service", gateways: 1, least: blip, most: 12 * time.Second, loses: true, do: (*havoc).crashWithoutService},

	{name: "deafen-gateway", gateways: 1, least: noticed, most: overdue, loses: true, do: (*havoc).deafen},
	{name: "deafen-all-gateways", gateways: every, least: noticed, most: overdue, loses: true, do: (*havoc).deafen},

	{name: "refresh", often: 3, do: (*havoc).refresh},
	{name: "settle", often: 8, smooth: true, do: (*havoc).even},
}

// every stands for all that there are.
const every = -1

// killAndReplace kills the victims at once. Gateways are replaced when everybody has found another one.
func (h *havoc) killAndReplace(ctx context.Context, a act) error {
	victims, hosts := h.victims(a), h.struckHosts(a)
	h.kill(victims)
	h.killHosts(hosts)
	if err := h.startHosts(hosts); err != nil {
		return err
	}
	h.note("%s killed", named(victims, hosts))
	if err := h.everybodyServed(ctx); err != nil {
		return err
	}
	return h.replace(ctx, a, victims)
}

// killAll kills all gateways, all hosts, or everything, and starts it again.
func (h *havoc) killAll(ctx context.Context, a act) error {
	victims, hosts := h.victims(a), h.struckHosts(a)
	h.kill(victims)
	h.killHosts(hosts)
	h.blameAll()
	h.note("%s killed and started again", named(victims, hosts))
	return errors.Join(h.startHosts(hosts), h.replace(ctx, a, victims))
}

// stopAll asks the victims to end, all at the same time, and starts them again.
func (h *havoc) stopAll(ctx context.Context, a act) error {
	victims, hosts := h.victims(a), h.struckHosts(a)
	h.note("%s stopped and started again", named(victims, hosts))
	var ended error
	var both sync.WaitGroup
	both.Go(func() { ended = h.stopHosts(hosts) })
	err := h.drain(victims)
	both.Wait()
	if len(victims) > 0 {
		h.blameAll() // there is nobody to hand over to
	}
	return errors.Join(ended, err, h.startHosts(hosts), h.replace(ctx, a, victims))
}

func (h *havoc) replaceAndDrain(ctx context.Context, a act) error {
	victims := h.victims(a)
	fresh, err := h.startGateways(ctx, len(victims))
	if err != nil {
		return err
	}
	h.note("%s stopped, after %s had started", strings.Join(victims, ", "), fresh[0].id)
	return h.drain(victims)
}

func (h *havoc) drainAndReplace(ctx context.Context, a act) error {
	victims := h.victims(a)
	h.note("%s stopped", strings.Join(victims, ", "))
	return errors.Join(h.drain(victims), h.replace(ctx, a, victims))
}

// killDuringDrain kills one gateway while another hands over to it, too.
func (h *havoc) killDuringDrain(ctx context.Context, a act) error {
	victims := h.victims(a)
	h.note("%s stopped, and %s killed meanwhile", victims[0], victims[1])
	var err error
	var draining sync.WaitGroup
	leaving := h.take(victims[:1])
	draining.Go(func() { err = h.end(leaving) })
	pauseErr := wait(ctx, h.cfg.propagation+h.cfg.window/2)
	h.kill(victims[1:])
	draining.Wait()
	h.forgetAll(leaving)
	return errors.Join(err, pauseErr, h.replace(ctx, a, victims))
}

// pauseBriefly is over before anybody has to notice.
func (h *havoc) pauseBriefly(ctx context.Context, a act) error {
	victims, hosts := h.victims(a), h.struckHosts(a)
	h.excused = blame{} // no stream breaks
	h.note("%s paused for %v", named(victims, hosts), a.lasts)
	return h.pause(ctx, victims, hosts, a.lasts)
}

func (h *havoc) pauseLong(ctx context.Context, a act) error {
	victims, hosts := h.victims(a), h.struckHosts(a)
	h.note("%s paused for %v", named(victims, hosts), a.lasts)
	return h.pause(ctx, victims, hosts, a.lasts)
}

// pauseDuringCrash kills one gateway, and replaces it while another is paused.
func (h *havoc) pauseDuringCrash(ctx context.Context, a act) error {
	victims := h.victims(a)
	h.note("%s killed and replaced, %s paused for %v", victims[0], victims[1], a.lasts)
	resume, err := h.stopNow(victims[1:], nil)
	over := time.Now().Add(a.lasts)
	h.kill(victims[:1])
	err = errors.Join(err, h.replace(ctx, a, victims[:1]), wait(ctx, time.Until(over)))
	return errors.Join(err, resume())
}

// cutSome resets some of the connections of supervisors, of sessions and between gateways.
func (h *havoc) cutSome(_ context.Context, a act) error {
	h.note("%d connections cut", h.cut(h.chance(a.share)))
	return nil
}

// cutAll resets all of them.
func (h *havoc) cutAll(context.Context, act) error {
	h.note("all %d connections cut", h.cut(func() bool { return true }))
	return nil
}

// cut resets connections through the Service and to the gateways' endpoints.
func (h *havoc) cut(chosen func() bool) int {
	n := h.balance.cut(chosen)
	for _, id := range h.ids() {
		n += h.gateways[id].link.cut(chosen)
	}
	return n
}

// cutLink makes a gateway's endpoint unreachable for a while, and resets what has come that way.
func (h *havoc) cutLink(ctx context.Context, a act) error {
	victims := h.victims(a)
	link := h.gateways[victims[0]].link
	link.set(refusing)
	defer link.set(fair)
	h.note("%s refuses whoever dials its endpoint for %v, %d connections cut", victims[0], a.lasts, link.cut(func() bool { return true }))
	return wait(ctx, a.lasts)
}

// deafen keeps all gossip from gateways, while streams and links are well: nobody moves for it.
func (h *havoc) deafen(ctx context.Context, a act) error {
	victims := h.victims(a)
	h.excused = blame{}
	all := func(w weather) {
		for _, id := range victims {
			h.gateways[id].hears.set(w)
		}
	}
	all(swallowing)
	defer all(fair)
	h.note("%s heard no gossip for %v", named(victims, nil), a.lasts)
	return wait(ctx, a.lasts)
}

func (h *havoc) serviceRefuses(ctx context.Context, a act) error {
	return h.withoutService(ctx, a, refusing, "refuses")
}

func (h *havoc) serviceSwallows(ctx context.Context, a act) error {
	return h.withoutService(ctx, a, swallowing, "swallows")
}

// withoutService resets some of the connections through the Service, which then takes no new ones for a while.
func (h *havoc) withoutService(ctx context.Context, a act, w weather, does string) error {
	h.balance.set(w)
	defer h.balance.set(fair)
	h.note("the Service %s for %v, %d of its connections cut", does, a.lasts, h.balance.cut(h.chance(a.share)))
	return wait(ctx, a.lasts)
}

// crashWithoutService kills a gateway while the Service takes no connections.
func (h *havoc) crashWithoutService(ctx context.Context, a act) error {
	victims := h.victims(a)
	h.note("%s killed, the Service refuses for %v", victims[0], a.lasts)
	h.balance.set(refusing)
	defer h.balance.set(fair)
	h.kill(victims)
	if err := wait(ctx, a.lasts); err != nil {
		return err
	}
	return h.replace(ctx, a, victims)
}

func (h *havoc) refresh(ctx context.Context, _ act) error {
	h.note("every stream ended, as by expired tokens")
	return h.refreshTokens(ctx)
}

// even has every gateway settle. Whom they name may move. Nobody else does, and no more than are above the even share.
func (h *havoc) even(ctx context.Context, _ act) error {
	err := h.evenOut(ctx)
	h.excused.member(h.settled.who...)
	h.note("settled with %d moves, of %d above the even share", h.settled.moves, h.settled.above)
	return errors.Join(err, sayAll(h.judgeSettled()))
}

// victims are the gateways that an act strikes; those whom they serve may move.
func (h *havoc) victims(a act) []string {
	var chosen []string
	ids := h.ids()
	for _, i := range a.victims {
		chosen = append(chosen, ids[i])
	}
	h.excused.gateway(chosen...)
	return chosen
}

// struckHosts are the hosts that an act strikes; those who live there may move.
func (h *havoc) struckHosts(a act) []*host {
	var chosen []*host
	for _, i := range a.hosts {
		chosen = append(chosen, h.hosts[i])
		h.excused.member(h.hosts[i].members...)
	}
	return chosen
}

func (h *havoc) blameAll() { h.excused.all = true }

// take removes gateways from those that are to run.
func (h *havoc) take(ids []string) []*gateway {
	var all []*gateway
	for _, id := range ids {
		all = append(all, h.gateways[id])
		delete(h.gateways, id)
	}
	return all
}

// kill ends gateways without a word, at the same time. The Service finds out by its probes.
func (h *havoc) kill(ids []string) {
	victims := h.take(ids)
	for _, g := range victims {
		_ = g.Cmd.Process.Kill()
	}
	for _, g := range victims {
		<-g.Done
		h.died[g.id] = time.Now()
		g.unlink()
	}
}

// drain lets gateways hand over and end, all at the same time.
func (h *havoc) drain(ids []string) error {
	leaving := h.take(ids)
	err := h.end(leaving)
	h.forgetAll(leaving)
	return err
}

// end asks gateways to end and waits for it. Each must within what its drain has been given.
func (h *havoc) end(leaving []*gateway) error {
	var processes []*child.Process
	for _, g := range leaving {
		processes = append(processes, g.Process)
	}
	return stopAtOnce(processes, h.cfg.killAfter())
}

func (h *havoc) forgetAll(gone []*gateway) {
	for _, g := range gone {
		h.forget(g)
	}
}

// stopHosts lets supervisors say goodbye.
func (h *havoc) stopHosts(hosts []*host) error {
	var processes []*child.Process
	for _, host := range hosts {
		processes = append(processes, host.Process)
	}
	err := stopAtOnce(processes, farewell)
	for _, host := range hosts {
		host.ops.Store(nil)
		h.board.died(host.members)
	}
	return err
}

// stopAtOnce asks processes to end. All must, with status 0, and each within patience.
func stopAtOnce(processes []*child.Process, patience time.Duration) error {
	errs := make([]error, len(processes))
	var all sync.WaitGroup
	for i, p := range processes {
		all.Go(func() { errs[i] = p.Stop(patience) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// replace starts as many gateways as have ended, under their own names or new ones.
func (h *havoc) replace(ctx context.Context, a act, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		h.balance.remove(id)
	}
	if a.sameName {
		h.note("started again")
		_, err := h.startNamed(ctx, ids)
		return err
	}
	fresh, err := h.startGateways(ctx, len(ids))
	for _, g := range fresh {
		h.note("%s started", g.id)
	}
	return err
}

// pause stops processes for a while.
func (h *havoc) pause(ctx context.Context, ids []string, hosts []*host, lasts time.Duration) error {
	resume, err := h.stopNow(ids, hosts)
	return errors.Join(err, wait(ctx, lasts), resume())
}

// stopNow stops processes where they are, until resume is called.
func (h *havoc) stopNow(ids []string, hosts []*host) (resume func() error, err error) {
	var processes []*child.Process
	for _, id := range ids {
		processes = append(processes, h.gateways[id].Process)
	}
	for _, host := range hosts {
		processes = append(processes, host.Process)
	}
	all := func(s os.Signal) error {
		var errs []error
		for _, p := range processes {
			errs = append(errs, p.Signal(s))
		}
		for _, id := range ids {
			g := h.gateways[id]
			if g.paused = s == syscall.SIGSTOP; !g.paused {
				g.resumed = time.Now()
			}
		}
		return errors.Join(errs...)
	}
	return func() error { return all(syscall.SIGCONT) }, all(syscall.SIGSTOP)
}

// chance chooses by chance.
func (h *havoc) chance(share float64) func() bool {
	return func() bool { return h.rnd.Float64() < share }
}

// named are the victims, for a person.
func named(ids []string, hosts []*host) string {
	all := ids
	for _, host := range hosts {
		all = append(all, host.Name)
	}
	if len(all) > 2*shown {
		return fmt.Sprintf("%d gateways and %d hosts", len(ids), len(hosts))
	}
	return strings.Join(all, ", ")
}

func sayAll(why []string) error {
	if len(why) == 0 {
		return nil
	}
	return errors.New(strings.Join(why, "; "))
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
