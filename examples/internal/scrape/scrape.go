// SPDX-License-Identifier: Apache-2.0

// Package scrape reads what processes say on /metrics, and on their other pages.
package scrape

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Page is the gauges and counters of a /metrics page, by name.
type Page map[string][]series

type series struct {
	labels map[string]string
	value  float64
}

// Get reads the page of the process whose operator's address is ops.
func Get(ctx context.Context, ops string) (Page, error) {
	body, err := read(ctx, ops, "/metrics")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return Parse(body)
}

// JSON decodes another of its pages into value.
func JSON(ctx context.Context, ops, path string, value any) error {
	body, err := read(ctx, ops, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(value); err != nil {
		return fmt.Errorf("http://%s%s: %w", ops, path, err)
	}
	return nil
}

// OK returns no error if one of its pages answers with 200. The error has what it says otherwise.
func OK(ctx context.Context, ops, path string) error {
	body, err := read(ctx, ops, path)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, body)
	return body.Close()
}

// read returns a page that is in order, for the caller to close.
func read(ctx context.Context, ops, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ops+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s: %s: %s", req.URL, resp.Status, bytes.TrimSpace(text))
	}
	return resp.Body, nil
}

// Parse reads a page.
func Parse(r io.Reader) (Page, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, err
	}
	page := make(Page)
	for name, family := range families {
		for _, m := range family.GetMetric() {
			s := series{labels: make(map[string]string), value: m.GetGauge().GetValue() + m.GetCounter().GetValue()}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			page[name] = append(page[name], s)
		}
	}
	return page, nil
}

// Sum adds up the series of a name that have all of these labels, given as names
// and values in turn. A name that is not on the page is an error.
func (p Page) Sum(name string, labels ...string) (float64, error) {
	all, ok := p[name]
	if !ok {
		return 0, fmt.Errorf("/metrics lacks %s", name)
	}
	total := 0.0
	for _, s := range all {
		if s.has(labels) {
			total += s.value
		}
	}
	return total, nil
}

func (s series) has(labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		if v, ok := s.labels[labels[i]]; !ok || v != labels[i+1] {
			return false
		}
	}
	return true
}
