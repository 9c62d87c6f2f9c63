package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// pages answers as a control plane's HTTP port does.
func pages(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	show := func(path string, v any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) })
	}
	show("/debug/plugins", []admin.Plugin{
		{
			Name: "files", Kind: "config", Carrier: "process", State: "serving", Version: "1", Rows: 5, Revision: 7,
			Restarts: 1, Memory: 30_500_000, LastError: "killed",
			Away: &admin.Away{
				Since: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), Why: "connection refused",
				Drops: time.Date(2026, 11, 1, 12, 5, 0, 0, time.UTC),
			},
		},
		{
			Name: "istio", Kind: "generator", Carrier: "process", State: "failed", Stale: true,
			StaleSince: time.Now().Add(-90*time.Minute - 10*time.Second), StaleWhy: "away",
		},
	})
	show("/debug/views", []admin.View{
		{Type: "type.googleapis.com/envoy.config.cluster.v3.Cluster", Facts: map[string]string{"scope": "a", "network": "n"}, Connections: 2, Resources: 3},
		{Type: "type.googleapis.com/envoy.config.cluster.v3.Cluster", Facts: map[string]string{"scope": "b", "network": "n"}, Connections: 1, Resources: 4},
	})
	show("/debug/configs", []any{
		map[string]any{
			"kind": "Gateway", "group": "networking.istio.io", "key": "edge/public", "plugin": "files",
			"source": "gw.yaml:1:1", "state": "ok", "served": true,
		},
		map[string]any{
			"kind": "VirtualService", "key": "shop/web", "plugin": "files", "source": "web.yaml:1:1",
			"state": "refused", "served": false, "faults": []admin.Fault{
				{File: "web.yaml", Line: 6, Column: 3, Severity: "error", Field: "spec.hots", Message: "unknown field", Hint: "it is hosts", Code: "COX1003"},
			},
		},
	})
	show("/debug/effects", admin.Effects{
		Proxies: 1, Asked: 2,
		Rows: []admin.Effect{{RowName: admin.RowName{Table: "networking.istio.io/Gateway", Key: "edge/public"}, Resources: 2, Proxies: 1}},
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", http.StatusInternalServerError) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestLists(t *testing.T) {
	at := pages(t)
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"plugins"}, 0, []string{
			"NAME   KIND       CARRIER  STATE                           VERSION  ROWS  REVISION  SAID  RESTARTS  MEMORY",
			"files  config     process  serving                         1        5     7         -     1         30.5 MB",
			"istio  generator  process  failed (stale for 1h30m: away)  -        0     0         -     0         -",
			"files failed last: killed",
			"files: its source is away since 2026-11-01 12:00:00: connection refused; its rows go at 2026-11-01 12:05:00 (onLoss)",
		}},
		{[]string{"plugins", "-o", "json"}, 0, []string{`"name":"files"`}},
		{[]string{"plugins", "-o", "yaml"}, 0, []string{"name: files"}},
		{[]string{"plugins", "-o", "wide"}, 0, []string{"files  config"}},
		{[]string{"views", "-o", "xml"}, 2, []string{"table, wide, json, yaml"}},
		{[]string{"config"}, 0, []string{
			"Gateway         edge/public  ok                    2 resources, 1 proxy  gw.yaml:1:1   files",
			"VirtualService  shop/web     refused (not served)  -                     web.yaml:1:1  files",
			"web.yaml:6:3: error: spec.hots: unknown field; it is hosts (COX1003)",
		}},
		{[]string{"views"}, 0, []string{"Cluster  2      3            4          scope (2)"}},
		{[]string{"request", "GET", "debug/views", "--addr", at}, 0, []string{`"scope":"a"`}},
		{[]string{"request", "GET", "/nothing", "--addr", at}, 0, []string{"404"}},
		{[]string{"request", "GET", "/broken", "--addr", at}, 1, []string{"oh", "500"}},
	} {
		var out bytes.Buffer
		code := run(context.Background(), c.args, []string{"COXSWAIN_ADDR=" + at}, nil, &out, &out)
		if code != c.code {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, out.String())
		}
		for _, part := range c.want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%v: no %q in\n%s", c.args, part, out.String())
			}
		}
	}
}
