// SPDX-License-Identifier: Apache-2.0

package gatewayd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/report"
)

// cluster serves the slices of a Service with these pods, which do not change,
// and returns a file that says how to reach it. A pod is a name, and may have
// an address for gossip: name@host:port.
func cluster(t *testing.T, pods ...string) (kubeconfig string) {
	t.Helper()
	list := discoveryv1.EndpointSliceList{
		TypeMeta: metav1.TypeMeta{Kind: "EndpointSliceList", APIVersion: "discovery.k8s.io/v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
	}
	for _, pod := range pods {
		name, address, _ := strings.Cut(pod, "@")
		slice := discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + name, ResourceVersion: "1"}}
		host := "127.0.0.1"
		if address != "" {
			at, err := netip.ParseAddrPort(address)
			require.NoError(t, err)
			host = at.Addr().String()
			slice.Ports = []discoveryv1.EndpointPort{{Name: new("gossip"), Port: new(int32(at.Port()))}}
		}
		slice.Endpoints = []discoveryv1.Endpoint{{
			Addresses: []string{host}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name},
		}}
		list.Items = append(list.Items, slice)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case r.URL.Path != "/apis/discovery.k8s.io/v1/namespaces/edge/endpointslices" || query.Get("labelSelector") != "kubernetes.io/service-name=gateway-peers":
			http.NotFound(w, r)
		case query.Get("sendInitialEvents") == "true":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
			})
		case query.Get("watch") == "true":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_ = json.NewEncoder(w).Encode(list)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
current-context: one
clusters: [{name: one, cluster: {server: %q}}]
contexts: [{name: one, context: {cluster: one, namespace: edge}}]
`, server.URL), 0o600))
	return file
}

// Kubernetes lists three gateways, of which two run. Both are ready for
// supervisors, and know that somebody is missing. The second has been told of
// the first by -join.
func TestKubernetesListsGateways(t *testing.T) {
	kubeconfig := cluster(t, "a", "b", "c")
	one, other := quick("a"), quick("b")
	one.KubeService, one.Kubeconfig, one.Join = "gateway-peers", kubeconfig, []string{"127.0.0.1:1"}
	a := start(t, one)
	other.KubeService, other.Kubeconfig, other.Join = "edge/gateway-peers", kubeconfig, []string{a.where.Gossip}
	ready(t, other)
	a.event(report.Ready)
	a.shows("/fleet", " 2 of 2 gateways placeable")
	listed := func() bool { // it may come after the other one has been heard
		_, logged := a.log.line("level=INFO", "gateways listed", "service=gateway-peers", "namespace=edge", "gateways=3", "partial=false")
		return logged
	}
	require.Eventually(t, listed, patience, time.Millisecond, a.log)
	_, body := a.get("/fleet")
	require.NotContains(t, body, "stale")
}

// Kubernetes alone says where gossip finds others: none is named by -join.
func TestKubernetesGivesSeeds(t *testing.T) {
	one, other := quick("a"), quick("b")
	one.KubeService, one.Kubeconfig = "gateway-peers", cluster(t, "a")
	a := ready(t, one)
	other.KubeService, other.Kubeconfig = "gateway-peers", cluster(t, "b", "a@"+a.where.Gossip, "c")
	b := ready(t, other)
	b.shows("/fleet", " 2 of 2 gateways placeable")
	a.shows("/fleet", " 2 of 2 gateways placeable")
}

func TestBadKubernetesFlags(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		want []string
	}{
		"a name":      {[]string{"-kube-service", "Peers", "-join", "x:1"}, []string{"-kube-service", `Service is "Peers"`}},
		"a namespace": {[]string{"-kube-service", "Edge/peers", "-join", "x:1"}, []string{"-kube-service", `Namespace is "Edge"`}},
		"of no use":   {[]string{"-kubeconfig", "config"}, []string{"-kubeconfig", "-kube-service"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(row.args...)
			for _, text := range row.want {
				require.ErrorContains(t, err, text)
			}
		})
	}
	cfg := quick("a")
	cfg.KubeService, cfg.Join, cfg.Kubeconfig = "peers", []string{"127.0.0.1:1"}, filepath.Join(t.TempDir(), "nowhere")
	cfg.Listen, cfg.Gossip, cfg.Ops = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	server, err := gatewayd.New(cfg)
	require.NoError(t, err)
	require.ErrorContains(t, server.Run(t.Context()), "-kubeconfig: ")

	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	cfg.Kubeconfig = ""
	server, err = gatewayd.New(cfg)
	require.NoError(t, err)
	require.ErrorContains(t, server.Run(t.Context()), "-kube-service: ")
}

func TestDrainPlan(t *testing.T) {
	c, err := parse("-propagation", "1s", "-window", "2s", "-confirm", "3s", "-kill-after", "20s")
	require.NoError(t, err)
	plan, err := c.DrainPlan()
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, plan.Total(), "with 4 s to leave")
	require.Equal(t, 20*time.Second, plan.KillAfter)
}
