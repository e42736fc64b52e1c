// SPDX-License-Identifier: Apache-2.0

package gatewayd_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/internal/gatewayd"
	"github.com/evenring/evenring/examples/internal/report"
	"github.com/evenring/evenring/redirect"
	"github.com/evenring/evenring/ring"
)

// settle asks a gateway to settle, and returns what it answers.
func (r *running) settle(query string) (code int, page gatewayd.Settled) {
	r.t.Helper()
	code, body, err := r.post("/settle" + query)
	require.NoError(r.t, err)
	require.NoError(r.t, json.Unmarshal([]byte(body), &page), "%s", body)
	return code, page
}

// post posts nothing to a page.
func (r *running) post(path string) (int, string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Post("http://"+r.where.Ops+path, "", nil)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// Two of three supervisors on one gateway: one that can move is told to, once.
func TestSettlePage(t *testing.T) {
	all := fleet(t, quick("a"), quick("b"))
	a, b := all[0], all[1]
	var moved atomic.Int32
	var supervisors sync.WaitGroup
	t.Cleanup(supervisors.Wait)
	for i := range 3 {
		hello := redirect.Hello{Member: ring.MemberID(fmt.Sprint("edge-", i)), CanRedirect: true, Stay: true}
		_, stream := plain(t).dial(a.where.Endpoint, hello)
		require.NotNil(t, stream)
		supervisors.Go(func() {
			notice, err := stream.Notice()
			for err == nil && notice.Kind != redirect.NoticeMove {
				notice, err = stream.Notice()
			}
			if err != nil {
				return
			}
			moved.Add(1)
			hello.Hops, hello.Proof = 1, notice.Proof
			if verdict, next, err := plain(t).try(notice.Endpoint, hello); next == nil {
				t.Errorf("it is not accepted: %+v, %v", verdict, err)
			}
			_ = stream.Close()
		})
	}
	a.shows("/metrics", "\nevenring_supervisors_served 3\n")
	b.shows("/fleet", " 3 ")

	code, page := a.settle("?stable=300ms&budget=7")
	require.Equal(t, http.StatusOK, code, "%+v", page)
	require.Equal(t, "even", page.Ending)
	require.Len(t, page.Moved, 1)
	require.Equal(t, "b", page.Moved[0].Gateway)
	require.Equal(t, []int{3, 1, 0}, []int{page.SpreadBefore, page.SpreadAfter, page.Left})
	require.Empty(t, page.Failed)
	b.shows("/metrics", "\nevenring_supervisors_served 1\n")
	a.shows("/metrics", "\nevenring_handoffs_total{outcome=\"moved\"} 1\n")

	for _, g := range all {
		code, page = g.settle("?stable=300ms")
		require.Equal(t, http.StatusOK, code, "%+v", page)
		require.Empty(t, page.Moved, "then nothing")
	}
	require.EqualValues(t, 1, moved.Load())
}

func TestSettlePageSaysNo(t *testing.T) {
	a := ready(t, quick("a"))
	for query, want := range map[string]string{
		"?budget=many":                  `budget is "many"`,
		"?budget=-1":                    "Config.Budget is -1",
		"?stable=long":                  `stable is "long"`,
		"?stable=3s&patience=1s":        "Config.Patience is 1s",
		"?stable=x&patience=y&budget=z": "patience is",
	} {
		code, body, err := a.post("/settle" + query)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, code, body)
		require.Contains(t, body, want)
	}
	code, _ := a.get("/settle")
	require.Equal(t, http.StatusMethodNotAllowed, code, "looking at it settles nothing")

	first := make(chan string, 1)
	go func() {
		code, body, err := a.post("/settle?stable=1h&patience=1h")
		first <- fmt.Sprint(code, " ", body, err)
	}()
	require.Eventually(t, func() bool { _, begun := a.log.line("is=waiting"); return begun }, patience, 10*time.Millisecond)
	code, page := a.settle("?stable=1ms")
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, page.Error, "a settle is under way")

	plain(t).attach(a.where.Endpoint, "edge-1") // so that the drain takes a while
	a.Drain()
	a.event(report.Draining)
	require.Contains(t, <-first, "409 ")
}
