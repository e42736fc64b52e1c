// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/placement/roster/kube"
)

const manifests = "gateways.yaml"

// fleet is what the manifests make.
type fleet struct {
	namespace  corev1.Namespace
	account    corev1.ServiceAccount
	role       rbacv1.Role
	binding    rbacv1.RoleBinding
	clients    corev1.Service
	peers      corev1.Service
	budget     policyv1.PodDisruptionBudget
	deployment appsv1.Deployment
}

// documents returns the parts of the file, which have nothing that the API does not know.
func documents(t *testing.T) [][]byte {
	t.Helper()
	text, err := os.ReadFile(manifests)
	require.NoError(t, err)
	var all [][]byte
	reader := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer reader.Close()
	for {
		part := make([]byte, len(text))
		n, err := reader.Read(part)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, part[:n])
	}
}

func read(t *testing.T) *fleet {
	t.Helper()
	f := new(fleet)
	into := map[string]any{
		"Namespace/evenring":            &f.namespace,
		"ServiceAccount/gateway":        &f.account,
		"Role/gateway-discovery":        &f.role,
		"RoleBinding/gateway-discovery": &f.binding,
		"Service/gateways":              &f.clients,
		"Service/gateway-peers":         &f.peers,
		"PodDisruptionBudget/gateways":  &f.budget,
		"Deployment/gateway":            &f.deployment,
	}
	for _, part := range documents(t) {
		var object metav1.PartialObjectMetadata
		require.NoError(t, yaml.Unmarshal(part, &object))
		key := object.Kind + "/" + object.Name
		require.Contains(t, into, key)
		require.NoError(t, yaml.UnmarshalStrict(part, into[key]), key)
		if object.Kind != "Namespace" {
			require.Equal(t, "evenring", object.Namespace, key)
		}
		delete(into, key)
	}
	require.Empty(t, into, "they are not in the file")
	return f
}

func (f *fleet) pod() corev1.PodSpec { return f.deployment.Spec.Template.Spec }

func (f *fleet) container(t *testing.T) corev1.Container {
	t.Helper()
	require.Len(t, f.pod().Containers, 1)
	return f.pod().Containers[0]
}

// gateway parses the container's flags, as the pod that has this name and
// address would: every flag exists, and what they say together is in order.
func (f *fleet) gateway(t *testing.T) gatewayd.Config {
	t.Helper()
	values := map[string]string{"metadata.name": "gateway-5d9c-abcde", "status.podIP": "10.1.2.3"}
	env := make(map[string]string)
	for _, v := range f.container(t).Env {
		switch from := v.ValueFrom; {
		case from.FieldRef != nil:
			require.Contains(t, values, from.FieldRef.FieldPath, v.Name)
			env[v.Name] = values[from.FieldRef.FieldPath]
		case from.SecretKeyRef != nil:
			require.Equal(t, "gateway-gossip/key", from.SecretKeyRef.Name+"/"+from.SecretKeyRef.Key)
			env[v.Name] = strings.Repeat("ab", 32) // as openssl rand -hex 32 gives
		}
	}
	var args []string
	for _, arg := range f.container(t).Args {
		for name, value := range env {
			arg = strings.ReplaceAll(arg, "$("+name+")", value)
		}
		require.NotContains(t, arg, "$(")
		args = append(args, arg)
	}
	cfg, err := gatewayd.Parse(args, func(name string) string { return env[name] }, io.Discard, io.Discard)
	require.NoError(t, err)
	return cfg
}

// A pod is killed after its drain has ended, and another one drains only then.
func TestDrainFits(t *testing.T) {
	f := read(t)
	plan, err := f.gateway(t).DrainPlan()
	require.NoError(t, err)
	grace := time.Duration(*f.pod().TerminationGracePeriodSeconds) * time.Second
	require.LessOrEqual(t, plan.Total(), plan.KillAfter)
	require.LessOrEqual(t, plan.KillAfter+5*time.Second, grace, "no time for the signal to arrive")
	require.Nil(t, f.container(t).Lifecycle, "a hook would take its part of the grace period")
	require.GreaterOrEqual(t, time.Duration(f.deployment.Spec.MinReadySeconds)*time.Second, plan.Total())
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("%v s for word to spread, %v s to hand over, %v s to confirm, %v s to leave: %v s, in the %v s of `-kill-after`",
		plan.Propagation.Seconds(), plan.Window.Seconds(), plan.Confirm.Seconds(), plan.Margin.Seconds(), plan.Total().Seconds(), plan.KillAfter.Seconds()))
	require.Contains(t, string(text), fmt.Sprintf("`terminationGracePeriodSeconds: %v`", grace.Seconds()))
	require.Contains(t, string(text), fmt.Sprintf("`minReadySeconds: %d`", f.deployment.Spec.MinReadySeconds))
}

func TestRollout(t *testing.T) {
	f := read(t)
	strategy := f.deployment.Spec.Strategy
	require.Equal(t, appsv1.RollingUpdateDeploymentStrategyType, strategy.Type)
	require.Equal(t, intstr.FromInt32(1), *strategy.RollingUpdate.MaxSurge)
	require.Equal(t, intstr.FromInt32(0), *strategy.RollingUpdate.MaxUnavailable)
	require.Equal(t, intstr.FromInt32(1), *f.budget.Spec.MaxUnavailable)
	pods := labels.Set(f.deployment.Spec.Template.Labels)
	for what, selector := range map[string]*metav1.LabelSelector{
		"the Deployment": f.deployment.Spec.Selector,
		"the budget":     f.budget.Spec.Selector,
		"the spread":     f.pod().TopologySpreadConstraints[0].LabelSelector,
		"the zones":      f.pod().TopologySpreadConstraints[1].LabelSelector,
		"the Service":    {MatchLabels: f.clients.Spec.Selector},
		"the peers":      {MatchLabels: f.peers.Spec.Selector},
	} {
		s, err := metav1.LabelSelectorAsSelector(selector)
		require.NoError(t, err)
		require.False(t, s.Empty(), what)
		require.True(t, s.Matches(pods), "%s does not select the pods", what)
	}
}

// Ports have one number wherever they are named, and the gateway listens there.
func TestPorts(t *testing.T) {
	f := read(t)
	cfg := f.gateway(t)
	ports := make(map[string]corev1.ContainerPort)
	for _, p := range f.container(t).Ports {
		ports[p.Name] = p
	}
	target := func(s corev1.Service, name string) corev1.ContainerPort {
		t.Helper()
		i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == name })
		require.GreaterOrEqual(t, i, 0, "%s has no port %s", s.Name, name)
		port, ok := ports[s.Spec.Ports[i].TargetPort.StrVal]
		require.True(t, ok, "%s: port %s leads nowhere", s.Name, name)
		require.Equal(t, s.Spec.Ports[i].Port, port.ContainerPort)
		require.Equal(t, corev1.Protocol(string(s.Spec.Ports[i].Protocol)), port.Protocol)
		return port
	}
	at := func(p corev1.ContainerPort) string { return fmt.Sprintf(":%d", p.ContainerPort) }
	require.Equal(t, at(target(f.clients, "supervisors")), cfg.Listen)
	require.Equal(t, at(target(f.peers, kube.DefaultPort)), cfg.Gossip)
	require.Equal(t, at(target(f.peers, kube.DefaultPort+"-udp")), cfg.Gossip)
	require.Equal(t, corev1.ProtocolUDP, target(f.peers, kube.DefaultPort+"-udp").Protocol)
	require.Equal(t, at(ports["ops"]), cfg.Ops)
	require.Equal(t, "10.1.2.3"+cfg.Listen, cfg.Endpoint)
	require.Equal(t, "10.1.2.3"+cfg.Gossip, cfg.Advertise)
}

// Gateways meet before they are ready, by the Service that they are told of.
func TestDiscovery(t *testing.T) {
	f := read(t)
	cfg := f.gateway(t)
	require.Equal(t, corev1.ClusterIPNone, f.peers.Spec.ClusterIP)
	require.True(t, f.peers.Spec.PublishNotReadyAddresses)
	require.False(t, f.clients.Spec.PublishNotReadyAddresses)
	require.Equal(t, f.peers.Name, cfg.KubeService)
	require.Empty(t, cfg.Join, "the slices have the addresses")
	require.Equal(t, "gateway-5d9c-abcde", string(cfg.ID), "the pod's name")
	require.Len(t, cfg.GossipKey, 32)
}

// The pod may do what its discovery needs, and nothing else.
func TestPermissions(t *testing.T) {
	f := read(t)
	require.Equal(t, []rbacv1.PolicyRule{{
		APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch"},
	}}, f.role.Rules)
	require.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: f.role.Name}, f.binding.RoleRef)
	require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: f.account.Name, Namespace: f.account.Namespace}}, f.binding.Subjects)
	require.Equal(t, f.account.Name, f.pod().ServiceAccountName)
	require.Equal(t, f.namespace.Name, f.role.Namespace)
}

func TestProbes(t *testing.T) {
	c := read(t).container(t)
	for _, row := range []struct {
		probe *corev1.Probe
		path  string
	}{{c.ReadinessProbe, "/readyz"}, {c.LivenessProbe, "/healthz"}} {
		require.Equal(t, row.path, row.probe.HTTPGet.Path)
		require.Equal(t, "ops", row.probe.HTTPGet.Port.StrVal)
	}
}

// A real API server takes the manifests as well, if EVENRING_KUBECONFIG says
// where one is. It keeps the namespace only.
func TestServerTakesThem(t *testing.T) {
	parts := documents(t)
	require.Len(t, parts, 8)
	if os.Getenv("EVENRING_KUBECONFIG") == "" {
		return // the other tests have read them strictly
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("EVENRING_KUBECONFIG"))
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(cfg)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	const inside = "/namespaces/evenring/"
	paths := map[string]string{
		"Namespace":           "/api/v1/namespaces",
		"ServiceAccount":      "/api/v1" + inside + "serviceaccounts",
		"Service":             "/api/v1" + inside + "services",
		"Role":                "/apis/rbac.authorization.k8s.io/v1" + inside + "roles",
		"RoleBinding":         "/apis/rbac.authorization.k8s.io/v1" + inside + "rolebindings",
		"PodDisruptionBudget": "/apis/policy/v1" + inside + "poddisruptionbudgets",
		"Deployment":          "/apis/apps/v1" + inside + "deployments",
	}
	for _, part := range parts {
		var object metav1.PartialObjectMetadata
		require.NoError(t, yaml.Unmarshal(part, &object))
		query := "?fieldValidation=Strict"
		if object.Kind != "Namespace" {
			query += "&dryRun=All"
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, cfg.Host+paths[object.Kind]+query, bytes.NewReader(part))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/yaml")
		response, err := client.Do(request)
		require.NoError(t, err)
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		if response.StatusCode != http.StatusConflict || object.Kind != "Namespace" {
			require.Equal(t, http.StatusCreated, response.StatusCode, "%s %s: %s", object.Kind, object.Name, answer)
		}
		require.Empty(t, response.Header.Values("Warning"), "%s %s", object.Kind, object.Name)
	}
}
