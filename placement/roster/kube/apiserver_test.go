// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// apiServer speaks Kubernetes' API for EndpointSlices over HTTP/2 with TLS:
// create, update, delete, list, and the watch protocol with bookmarks, streamed
// lists, and versions that are forgotten.
type apiServer struct {
	http *httptest.Server

	mu         sync.Mutex
	version    int
	slices     map[string]*discoveryv1.EndpointSlice // by namespace/name
	log        []change
	forgotten  int           // versions below it have left the log
	bookmarked int           // the version of the last bookmark
	changed    chan struct{} // closed, and made anew, with every change
}

// change is one entry of the log. Its slice is not written to.
type change struct {
	version int
	kind    string // as in a watch event
	slice   *discoveryv1.EndpointSlice
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	a := &apiServer{slices: make(map[string]*discoveryv1.EndpointSlice), changed: make(chan struct{}), version: 100}
	mux := http.NewServeMux()
	const all = "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
	mux.HandleFunc("GET "+all, a.get)
	mux.HandleFunc("POST "+all, a.write)
	mux.HandleFunc("PUT "+all+"/{name}", a.write)
	mux.HandleFunc("DELETE "+all+"/{name}", a.remove)
	a.http = serveTLS(t, mux)
	return a
}

// serveTLS serves HTTP/2 until the test ends.
func serveTLS(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// certificate returns the one to trust, as PEM.
func certificate(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// as returns the configuration of a client with a token: "nobody" may do nothing.
func (a *apiServer) as(token string) *rest.Config {
	return &rest.Config{
		Host: a.http.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: certificate(a.http)},
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}, // a real server speaks protobuf too
	}
}

// forget makes every version before the newest too old to watch from.
func (a *apiServer) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forgotten, a.log = a.version, nil
}

// bookmark sends everybody who watches the newest version, which no slice has,
// ends their streams, and forgets what was before. It returns the version.
func (a *apiServer) bookmark() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.forgotten, a.log, a.bookmarked = a.version, nil, a.version
	a.wake()
	return a.version
}

// wake is called under the lock.
func (a *apiServer) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *apiServer) allowed(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") != "Bearer nobody" {
		return true
	}
	fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, `endpointslices.discovery.k8s.io is forbidden: User "nobody" cannot list resource "endpointslices"`)
	return false
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	answer(w, code, status(code, reason, message))
}

func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// typed fills in what a slice's JSON says of itself.
func typed(s *discoveryv1.EndpointSlice, version int) *discoveryv1.EndpointSlice {
	s = s.DeepCopy()
	s.TypeMeta = metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"}
	s.ResourceVersion = strconv.Itoa(version)
	return s
}

// write creates or updates a slice.
func (a *apiServer) write(w http.ResponseWriter, r *http.Request) {
	var s discoveryv1.EndpointSlice
	if !a.allowed(w, r) {
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.Namespace = r.PathValue("namespace")
	key := s.Namespace + "/" + s.Name
	kind, code := "MODIFIED", http.StatusOK
	switch _, exists := a.slices[key]; {
	case r.Method == http.MethodPost && exists:
		fail(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, key)
		return
	case r.Method == http.MethodPost:
		kind, code = "ADDED", http.StatusCreated
	case !exists:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, key)
		return
	}
	a.version++
	a.slices[key] = typed(&s, a.version)
	a.log = append(a.log, change{a.version, kind, a.slices[key]})
	a.wake()
	answer(w, code, a.slices[key])
}

func (a *apiServer) remove(w http.ResponseWriter, r *http.Request) {
	if !a.allowed(w, r) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := r.PathValue("namespace") + "/" + r.PathValue("name")
	s, ok := a.slices[key]
	if !ok {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, key)
		return
	}
	delete(a.slices, key)
	a.version++
	a.log = append(a.log, change{a.version, "DELETED", typed(s, a.version)})
	a.wake()
	answer(w, http.StatusOK, status(http.StatusOK, "", ""))
}

// selection is which slices a request is about.
type selection struct {
	namespace string
	labels    labels.Selector
}

func (s selection) has(slice *discoveryv1.EndpointSlice) bool {
	return slice.Namespace == s.namespace && s.labels.Matches(labels.Set(slice.Labels))
}

// of is called under the lock.
func (s selection) of(all map[string]*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	var found []*discoveryv1.EndpointSlice
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if s.has(all[key]) {
			found = append(found, all[key])
		}
	}
	return found
}

func (a *apiServer) get(w http.ResponseWriter, r *http.Request) {
	if !a.allowed(w, r) {
		return
	}
	selector, err := labels.Parse(r.FormValue("labelSelector"))
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	s := selection{r.PathValue("namespace"), selector}
	if watch, _ := strconv.ParseBool(r.FormValue("watch")); watch {
		a.watch(w, r, s)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	list := discoveryv1.EndpointSliceList{
		TypeMeta: metav1.TypeMeta{Kind: "EndpointSliceList", APIVersion: "discovery.k8s.io/v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)},
	}
	for _, slice := range s.of(a.slices) {
		list.Items = append(list.Items, *slice)
	}
	answer(w, http.StatusOK, list)
}

// stream writes watch events.
type stream struct {
	to   http.ResponseWriter
	json *json.Encoder
}

func (s stream) send(kind string, object any) {
	_ = s.json.Encode(struct {
		Type   string `json:"type"`
		Object any    `json:"object"`
	}{kind, object})
	s.to.(http.Flusher).Flush()
}

func (s stream) bookmark(version int, endOfList bool) {
	mark := typed(&discoveryv1.EndpointSlice{}, version)
	if endOfList {
		mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	s.send("BOOKMARK", mark)
}

// watch streams changes until the client goes.
func (a *apiServer) watch(w http.ResponseWriter, r *http.Request, s selection) {
	initial, _ := strconv.ParseBool(r.FormValue("sendInitialEvents"))
	marks, _ := strconv.ParseBool(r.FormValue("allowWatchBookmarks"))
	at, _ := strconv.Atoi(r.FormValue("resourceVersion")) // none is 0: from now on
	a.mu.Lock()
	gone := at != 0 && at < a.forgotten
	first := s.of(a.slices)
	marked := a.bookmarked
	if initial || at == 0 {
		at = a.version
	}
	a.mu.Unlock()

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := stream{w, json.NewEncoder(w)}
	w.(http.Flusher).Flush()
	if gone {
		out.send("ERROR", status(http.StatusGone, metav1.StatusReasonExpired, fmt.Sprintf("too old resource version: %d", at)))
		return
	}
	if initial {
		for _, slice := range first {
			out.send("ADDED", slice)
		}
		out.bookmark(at, true)
	}
	for {
		a.mu.Lock()
		changed, mark := a.changed, a.bookmarked
		var news []change
		for _, c := range a.log {
			if c.version > at && s.has(c.slice) {
				news = append(news, c)
			}
		}
		at = max(at, a.version)
		a.mu.Unlock()
		for _, c := range news {
			out.send(c.kind, c.slice)
		}
		if marks && mark > marked {
			out.bookmark(mark, false)
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// The server itself: a slice is created once, and versions grow.
func TestAPIServer(t *testing.T) {
	a := newAPIServer(t)
	do := func(method, path, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, a.http.URL+"/apis/discovery.k8s.io/v1/namespaces/n/endpointslices"+path, strings.NewReader(body))
		require.NoError(t, err)
		response, err := a.http.Client().Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		var object metav1.PartialObjectMetadata
		_ = json.NewDecoder(response.Body).Decode(&object)
		return response.StatusCode, cmp.Or(object.ResourceVersion, object.Kind)
	}
	const slice = `{"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[]}`
	for _, step := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"GET", "", "", 200, "100"},
		{"PUT", "/a", slice, 404, "Status"},
		{"POST", "", slice, 201, "101"},
		{"POST", "", slice, 409, "Status"},
		{"PUT", "/a", slice, 200, "102"},
		{"POST", "", "{", 400, "Status"},
		{"DELETE", "/a", "", 200, "Status"},
		{"DELETE", "/a", "", 404, "Status"},
		{"GET", "", "", 200, "103"},
	} {
		code, says := do(step.method, step.path, step.body)
		require.Equal(t, step.code, code, step)
		require.Equal(t, step.says, says, step)
	}
}
