package nacos

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// lie answers in a twin's place, if it returns something.
type lie = func(ctx context.Context, p *payload, asked map[string]any) (*payload, error)

// ofWeb lies about the service web.
func ofWeb(info string) lie {
	return func(_ context.Context, p *payload, asked map[string]any) (*payload, error) {
		if p.kind != subscribe || asked["serviceName"] != "web" {
			return nil, nil
		}
		return &payload{kind: "SubscribeServiceResponse", body: []byte(`{"resultCode": 200, "serviceInfo": ` + info + `}`)}, nil
	}
}

// hostsOf has the service have instances as they are written.
func hostsOf(all ...string) lie {
	return ofWeb(`{"name": "web", "groupName": "DEFAULT_GROUP", "hosts": [` + strings.Join(all, ",") + `]}`)
}

// lists lies about the list of services, a page at a time.
func lists(page func(n int) string) lie {
	return func(_ context.Context, p *payload, asked map[string]any) (*payload, error) {
		if p.kind != serviceList {
			return nil, nil
		}
		return &payload{kind: "ServiceListResponse", body: []byte(page(int(asked["pageNo"].(float64))))}, nil
	}
}

func asWritten(r record) string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// namesOf are many that sort after web.
func namesOf(page, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"zz%d-%d"`, page, i)
	}
	return strings.Join(all, ",")
}

// TestLiar: a Nacos that answers what no Nacos does ends nothing, takes nothing away, and keeps no
// other service back; no more is kept than may be, and when it is well again, what there is
// arrives.
func TestLiar(t *testing.T) {
	one, two := asWritten(at(1)), asWritten(at(2))
	several := func(n int, text func(i int) string) (all []string) {
		for i := range n {
			all = append(all, text(i))
		}
		return all
	}
	ill := func(i int) string { return asWritten(at(1000+i, with("healthy", false))) }
	for name, tt := range map[string]struct {
		lie lie
		// about is what it is asked. rest: 10.0.0.2 is there, too. says is the reason of a fault.
		about string
		rest  bool
		says  string
	}{
		"nulls":           {hostsOf("null", one, two, "null"), subscribe, true, "record"},
		"of other types":  {hostsOf("7", `"a"`, "[]", one, two, `{"ip": 7}`, `{"ip": "10.0.0.9", "port": {}, "metadata": 7}`), subscribe, true, "record"},
		"empty ones":      {hostsOf(several(100_000, func(int) string { return "{}" })...), subscribe, false, ""},
		"too many":        {hostsOf(append([]string{one, two}, several(2000, ill)...)...), subscribe, true, "limit"},
		"again and again": {hostsOf(append([]string{one, two}, several(2000, func(int) string { return one })...)...), subscribe, true, ""},
		"deep":            {ofWeb(strings.Repeat("[", 100_000)), subscribe, false, ""},
		"deep metadata": {hostsOf(one, two, `{"ip": "10.0.0.3", "port": 1, "healthy": false, "metadata": {"a": `+
			strings.Repeat(`{"a":`, 5000)+"1"+strings.Repeat("}", 5000)+"}}"), subscribe, true, ""},
		"numbers too large": {hostsOf(one, two, `{"ip": "10.0.0.3", "port": 1e99, "weight": 1e308, "healthy": false}`), subscribe, true, "port"},
		"odd names": {hostsOf(
			one, two,
			`{"ip": "10.0.0.3", "port": 1, "healthy": false, "clusterName": "\u0000/../\u001b", "metadata": {"\u001b": "\u0000", "k": "\u001b[2J"}}`,
		), subscribe, true, "label"},
		"of another": {ofWeb(`{"name": "other", "groupName": "SECRET", "hosts": {}}`), subscribe, false, ""},
		"an error": {func(context.Context, *payload, map[string]any) (*payload, error) {
			return nil, status.Error(codes.Code(99), strings.Repeat("\x1b no", 1000))
		}, "", false, ""},
		"no answer": {func(ctx context.Context, p *payload, asked map[string]any) (*payload, error) {
			if p.kind != subscribe {
				return nil, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}, subscribe, false, ""},
		"one page for ever": {lists(func(int) string {
			return `{"resultCode": 200, "count": 7, "serviceNames": [` + namesOf(1, pageSize) + `]}`
		}), serviceList, false, "limit"},
		"pages for ever": {lists(func(n int) string {
			return `{"resultCode": 200, "count": 7, "serviceNames": [` + namesOf(n, pageSize) + `]}`
		}), serviceList, false, ""},
		"a large page": {lists(func(int) string {
			return `{"resultCode": 200, "count": 7, "serviceNames": [` + namesOf(1, 5*pageSize) + `]}`
		}), serviceList, false, ""},
		"odd services": {lists(func(int) string {
			return `{"resultCode": 200, "count": 9, "serviceNames": ["", "../x", "a\u0000b", "\u001b[2J", null]}`
		}), serviceList, false, ""},
		"a count of types": {lists(func(int) string { return `{"resultCode": 200, "count": {"a": []}, "serviceNames": null}` }), serviceList, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwin(t)
			w.set("web", at(1))
			w.set("other", at(9))
			h := begin(t, map[string]any{
				"limits": map[string]int{"messageBytes": 1 << 20, "instances": 50, "services": 20}, "refresh": "1s",
				"timeout": "1s", "keep": "0s",
			}, w)
			has(t, h, "web", "10.0.0.1")
			has(t, h, "other", "10.0.0.9")
			w.change(func() { w.apart = tt.lie })
			if tt.rest {
				has(t, h, "web", "10.0.0.1", "10.0.0.2")
			} else {
				w.keeps(t, h, tt.about, 3, "web", "10.0.0.1")
			}
			if tt.says != "" {
				h.WaitRows("faults", func(rows map[string]*sdk.Row) bool {
					for key := range rows {
						if strings.HasSuffix(key, ":"+tt.says) {
							return true
						}
					}
					return false
				})
			}
			for key, r := range h.Rows("faults") {
				if strings.ContainsAny(string(r.Payload), "\x00\x1b") || len(r.Payload) > 2000 {
					t.Errorf("%q: %q is shown", key, r.Payload)
				}
			}
			for _, line := range h.Logs() {
				if strings.ContainsAny(line, "\x00\x1b") {
					t.Errorf("%q is logged", line)
				}
			}
			if n := len(h.Rows("endpoints")); n > 60 {
				t.Errorf("%d endpoints are kept", n)
			}
			w.change(func() { w.apart = nil })
			w.set("web", at(1), at(3))
			w.set("other", at(8))
			has(t, h, "other", "10.0.0.8")
			h.WaitRows("endpoints", func(rows map[string]*sdk.Row) bool { return rows["default/web.nacos/http-8080/10.0.0.3:8080"] != nil })
		})
	}
}

// TestLiarTells: what a server tells unasked, again and again, of whatever, is taken as far as
// somebody wants to know.
func TestLiarTells(t *testing.T) {
	w := newTwin(t)
	w.set("web", at(1))
	h := begin(t, nil, w)
	has(t, h, "web", "10.0.0.1")
	tell := func(kind, body string) {
		w.until(t, "it is connected", func() bool { return len(w.known) == 1 })
		w.change(func() {
			for _, c := range w.known {
				_ = c.send(&payload{kind: kind, body: []byte(body)})
			}
		})
	}
	for n := range 2000 {
		tell(notify, fmt.Sprintf(`{"requestId": "%d", "serviceInfo": {"name": "s%d", "groupName": "OTHER", "hosts": []}}`, n, n))
		tell(notify, `{"requestId": {}, "serviceInfo": {"name": "web", "groupName": "OTHER", "hosts": []}}`)
	}
	tell(clientDetection, `{"requestId": []}`)
	tell("WhateverRequest", `{}`)
	w.keeps(t, h, serviceList, 2, "web", "10.0.0.1")
	if n := len(h.Rows("services")); n != 1 {
		t.Errorf("there are %d services", n)
	}
	tell(connectReset, `{"serverIp": "169.254.169.254", "serverPort": "80"}`) // it is not gone to
	w.keeps(t, h, serverCheck, 1, "web", "10.0.0.1")
	w.set("web", at(1), at(3))
	has(t, h, "web", "10.0.0.1", "10.0.0.3")
}

// TestLiarIsToldNothing: what a server is told to know who asks stands in no text.
func TestLiarIsToldNothing(t *testing.T) {
	w := newTwin(t)
	w.password = "first-secret"
	w.set("web", at(1))
	address, offset := w.ports(t)
	h := plugintest.Start(t, Plugin(),
		configOf(map[string]any{"servers": []string{address}, "grpcOffset": offset, "username": "mesh", "password": "first-secret"}))
	h.WaitSynced()
	has(t, h, "web", "10.0.0.1")
	for _, l := range []lie{
		func(_ context.Context, p *payload, _ map[string]any) (*payload, error) {
			if p.kind != serviceList {
				return nil, nil
			}
			return nil, status.Error(codes.Internal, "no "+p.headers["accessToken"])
		},
		func(_ context.Context, p *payload, _ map[string]any) (*payload, error) {
			if p.kind != serviceList {
				return nil, nil
			}
			return fails(500, "no "+p.headers["accessToken"]), nil
		},
	} {
		w.change(func() { w.apart = l })
		w.keeps(t, h, serviceList, 2, "web", "10.0.0.1")
	}
	h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
		return strings.Contains(fields["error"], "[secret]")
	})
	all := h.Logs()
	for _, r := range h.Rows("faults") {
		all = append(all, string(r.Payload))
	}
	if slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "token-1") || strings.Contains(s, "first-secret") }) {
		t.Errorf("it is told: %q", all)
	}
}
