// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	discovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
	rbac "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/evenring/evenring/placement/roster"
	"github.com/evenring/evenring/placement/roster/kube"
	"github.com/evenring/evenring/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient bounds what should happen soon. It is spent only by a test that fails.
const patient = 30 * time.Second

// service is the Service of every test.
const service = "gateways"

// self is the gateway of every test.
const self ring.GatewayID = "gw-a"

var quiet = log.New(io.Discard, "", 0)

// ending returns a configuration whose connections end with the test.
func ending(t *testing.T, c *rest.Config) *rest.Config {
	t.Helper()
	c = rest.CopyConfig(c)
	t.Cleanup(kube.Track(c))
	return c
}

// site is a namespace at an API server, with a proxy before it: the server of
// this package's tests, or a real one if EVENRING_KUBECONFIG names a file whose
// contexts admin, gateway and nobody are users that may do everything, what the
// tests allow, and nothing.
type site struct {
	*proxy
	t         *testing.T
	namespace string
	nobody    *rest.Config // direct
	slices    discovery.EndpointSliceInterface
	own       *apiServer // nil: a real one
}

func newSite(t *testing.T) *site {
	t.Helper()
	file := os.Getenv("EVENRING_KUBECONFIG")
	if file == "" {
		return ownSite(t)
	}
	as := func(name string) *rest.Config {
		c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
		require.NoError(t, err)
		return c
	}
	admin := ending(t, as("admin"))
	s := &site{t: t, nobody: as("nobody")}
	spaces, err := core.NewForConfig(admin)
	require.NoError(t, err)
	made, err := spaces.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "evenring-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.namespace = made.Name
	s.allow(admin, "gateway")
	s.reach(admin, as("gateway"))
	return s
}

// ownSite is at this package's own server, whatever the environment says.
func ownSite(t *testing.T) *site {
	t.Helper()
	a := newAPIServer(t)
	s := &site{t: t, own: a, namespace: "default", nobody: a.as("nobody")}
	s.reach(ending(t, a.as("admin")), a.as("gateway"))
	return s
}

func (s *site) reach(admin, gateway *rest.Config) {
	api, err := discovery.NewForConfig(admin)
	require.NoError(s.t, err)
	s.slices = api.EndpointSlices(s.namespace)
	s.proxy = newProxy(s.t, gateway)
}

// allow gives a user what this package's documentation says that it needs.
func (s *site) allow(admin *rest.Config, user string) {
	roles, err := rbac.NewForConfig(admin)
	require.NoError(s.t, err)
	_, err = roles.Roles(s.namespace).Create(s.t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "discovery"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch"},
		}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	_, err = roles.RoleBindings(s.namespace).Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "discovery"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "discovery"},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// streamsLists reports whether the server streams lists: the one of these tests
// does, and a real one if its store is new enough for it.
func (s *site) streamsLists() bool {
	if s.own != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patient)
	defer cancel()
	stream, err := s.slices.Watch(ctx, metav1.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	require.NoError(s.t, err)
	defer stream.Stop()
	for ev := range stream.ResultChan() {
		switch ev.Type {
		case watch.Error:
			s.t.Logf("the server does not stream lists: %v", apierrors.FromObject(ev.Object))
			return false
		case watch.Bookmark:
			return true
		}
	}
	require.FailNow(s.t, "the stream has ended")
	return false
}

// put creates a slice, or changes the one of its name.
func (s *site) put(slice *discoveryv1.EndpointSlice) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patient)
	defer cancel()
	_, err := s.slices.Create(ctx, slice, metav1.CreateOptions{})
	if err != nil {
		_, err = s.slices.Update(ctx, slice, metav1.UpdateOptions{})
	}
	require.NoError(s.t, err)
}

func (s *site) remove(name string) {
	s.t.Helper()
	require.NoError(s.t, s.slices.Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

// watcher is a discovery of a test, and what its replica was told.
type watcher struct {
	*kube.Discovery
	t   *testing.T
	log *book

	mu     sync.Mutex
	events []roster.Event
}

// Step implements [roster.Replica].
func (w *watcher) Step(ev roster.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, ev)
}

func (w *watcher) told() []roster.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// start begins a discovery through the proxy. change may be nil. By default
// failures are told at once, and whoever is missing is kept for ever.
func (s *site) start(change func(*kube.Config)) *watcher {
	s.t.Helper()
	w := &watcher{t: s.t, log: new(book)}
	cfg := kube.Config{
		Gateway: self, Service: service, Namespace: s.namespace, Client: s.config(),
		Settle: time.Hour, Tolerance: time.Nanosecond,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	d, err := kube.Start(cfg, w)
	require.NoError(s.t, err)
	w.Discovery = d
	s.t.Cleanup(func() {
		d.Close()
		if s.t.Failed() {
			s.t.Logf("log:\n%s\ntold: %+v\nasked: %+v", w.log, w.told(), s.asked())
		}
	})
	return w
}

// lists waits until the replica was told of exactly these gateways last.
func (w *watcher) lists(ids ...ring.GatewayID) {
	w.t.Helper()
	w.until(func(ev roster.Event) bool {
		list, ok := ev.(roster.Discovered)
		return ok && !list.Partial && slices.Equal(list.Gateways, ids)
	}, fmt.Sprint("listed ", ids))
}

// fails waits until the replica was told of a failure last, and returns it.
func (w *watcher) fails() error {
	w.t.Helper()
	var failure error
	w.until(func(ev roster.Event) bool {
		failed, ok := ev.(roster.DiscoveryFailed)
		failure = failed.Err
		return ok
	}, "failed")
	return failure
}

func (w *watcher) until(last func(roster.Event) bool, what string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		told := w.told()
		return len(told) > 0 && last(told[len(told)-1])
	}, patient, 5*time.Millisecond, "never %s", what)
}

// knows waits until the discovery has a peer of that kind.
func (w *watcher) knows(what string, is func(kube.Peer) bool) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		for p := range w.Peers() {
			if is(p) {
				return true
			}
		}
		return false
	}, patient, 5*time.Millisecond, "no peer is %s", what)
}

func (w *watcher) seeds() []string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patient)
	defer cancel()
	seeds, err := w.Seeds(ctx)
	require.NoError(w.t, err)
	return seeds
}

// eventually waits for what no event tells.
func (s *site) eventually(what string, condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, patient, 5*time.Millisecond, what)
}

// book keeps a log.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// lines counts those that have all the words.
func (b *book) lines(words ...string) (n int) {
	for line := range strings.Lines(b.String()) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			n++
		}
	}
	return n
}

// slice makes one of the Service, with the ports gossip and supervisors.
func slice(name string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "a-test"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   endpoints,
		Ports: []discoveryv1.EndpointPort{
			{Name: new("supervisors"), Port: new(int32(7000)), Protocol: new(corev1.ProtocolTCP)},
			{Name: new("gossip"), Port: new(int32(7946)), Protocol: new(corev1.ProtocolTCP)},
		},
	}
	for _, e := range endpoints {
		if strings.Contains(e.Addresses[0], ":") {
			s.AddressType = discoveryv1.AddressTypeIPv6
		}
	}
	return s
}

// pod makes a ready endpoint.
func pod(name ring.GatewayID, addresses ...string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  addresses,
		Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: string(name), Namespace: "default"},
	}
}

// terminating makes one that is being deleted.
func terminating(e discoveryv1.Endpoint, serving bool) discoveryv1.Endpoint {
	e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: &serving, Terminating: new(true)}
	return e
}
