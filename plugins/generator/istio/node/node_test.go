package node

import (
	"slices"
	"strconv"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

func TestFrom(t *testing.T) {
	m, err := structpb.NewStruct(map[string]any{
		"NAMESPACE": "ns", "INSTANCE_IPS": "10.0.0.1,2001:db8::1", "LABELS": map[string]any{"app": "a"},
		"COXSWAIN_NO_AGENT": true, "INTERCEPTION_MODE": "NONE",
	})
	if err != nil {
		t.Fatal(err)
	}
	n, err := From(&core.Node{
		Id: "sidecar~10.0.0.1~a-1.other~ns.svc.cluster.local", Metadata: m,
		Locality: &core.Locality{Region: "r", SubZone: "s"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n.Type != Sidecar || n.Name != "a-1" || n.Namespace != "ns" || n.Domain != "ns.svc.cluster.local" || n.Locality != "r//s" ||
		n.Labels["app"] != "a" || n.Metadata.Client.From != encode.Nowhere || n.Metadata.Interception != None ||
		!slices.Equal(n.Addresses, []string{"10.0.0.1", "2001:db8::1"}) {
		t.Errorf("%+v", n)
	}
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		id, metadata string
		want         []string
	}{
		{"10.0.0.1", "10.0.0.2,2001:DB8::1", []string{"10.0.0.2", "2001:db8::1"}},
		{"10.0.0.1", "10.0.0.2,no", []string{"10.0.0.1"}},
		{"10.0.0.1", "10.0.0.2, 10.0.0.3", []string{"10.0.0.1"}},
		{"10.0.0.1", "", []string{"10.0.0.1"}},
		{"no", "10.0.0.2", []string{"10.0.0.2"}},
		{"no", "fe80::1%eth0", nil},
	} {
		n, err := From(&core.Node{Id: "sidecar~" + c.id + "~a.ns~ns.svc.cluster.local", Metadata: metadata(t, map[string]any{"INSTANCE_IPS": c.metadata})}, nil)
		switch {
		case err != nil && c.want != nil:
			t.Errorf("%s and %s: %v", c.id, c.metadata, err)
		case err == nil && !slices.Equal(n.Addresses, c.want):
			t.Errorf("%s and %s: %v, want %v", c.id, c.metadata, n.Addresses, c.want)
		}
	}
}

func TestNamespace(t *testing.T) {
	for id, want := range map[string]string{
		"sidecar~10.0.0.1~a.id~domain.svc.cluster.local": "domain",
		"sidecar~10.0.0.1~a.id~domain":                   "id",
	} {
		if n, err := From(&core.Node{Id: id}, nil); err != nil || n.Namespace != want {
			t.Errorf("%s: %v, %v", id, n, err)
		}
	}
}

func TestSwitches(t *testing.T) {
	for _, c := range []struct {
		value          any
		truth, http10  bool
		timeout, proxy string
	}{
		{"1", true, true, "", "1"},
		{"True", true, false, "", ""},
		{true, true, false, "", ""},
		{"yes", false, false, "", ""},
		{"0", false, false, "0s", "0"},
		{"70s", false, false, "1m10s", ""},
		{"-1s", false, false, "", ""},
		{"3128", false, false, "", "3128"},
	} {
		m := parseMetadata(metadata(t, map[string]any{"DNS_CAPTURE": c.value, "HTTP10": c.value, "IDLE_TIMEOUT": c.value, "HTTP_PROXY_PORT": c.value}))
		timeout, proxy := "", ""
		if m.IdleTimeout != nil {
			timeout = m.IdleTimeout.String()
		}
		if m.HTTPProxyPort != nil {
			proxy = strconv.Itoa(int(*m.HTTPProxyPort))
		}
		if (m.Resolver != "") != c.truth || m.HTTP10 != c.http10 || timeout != c.timeout || proxy != c.proxy {
			t.Errorf("%v: %v, %v, %q, %q", c.value, m.Resolver, m.HTTP10, timeout, proxy)
		}
	}
}

func metadata(t *testing.T, fields map[string]any) *structpb.Struct {
	t.Helper()
	m, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSupports(t *testing.T) {
	for _, c := range []struct {
		extensions []string
		want       bool
	}{
		{nil, true},
		{[]string{}, false},
		{[]string{"x"}, false},
		{[]string{"x", "b"}, true},
	} {
		if got := (&Node{extensions: c.extensions}).Supports("a", "b"); got != c.want {
			t.Errorf("%v: %v", c.extensions, got)
		}
	}
}

// TestResolver: where agents answer DNS, by what their proxies say.
func TestResolver(t *testing.T) {
	for name, c := range map[string]struct {
		says map[string]any
		want string
	}{
		"nothing":           {map[string]any{}, ""},
		"not captured":      {map[string]any{"DNS_PROXY_ADDR": "127.0.0.1:15053"}, ""},
		"captured":          {map[string]any{"DNS_CAPTURE": "true"}, "127.0.0.1:15053"},
		"elsewhere":         {map[string]any{"DNS_CAPTURE": "true", "DNS_PROXY_ADDR": "10.0.0.1:53"}, "10.0.0.1:53"},
		"by its name":       {map[string]any{"DNS_CAPTURE": "true", "DNS_PROXY_ADDR": "localhost:15099"}, "127.0.0.1:15099"},
		"IPv6":              {map[string]any{"DNS_CAPTURE": "true", "DNS_PROXY_ADDR": "[::1]:15053"}, "[::1]:15053"},
		"without a port":    {map[string]any{"DNS_CAPTURE": "true", "DNS_PROXY_ADDR": "10.0.0.1"}, "127.0.0.1:15053"},
		"another name":      {map[string]any{"DNS_CAPTURE": "true", "DNS_PROXY_ADDR": "dns.example:53"}, "127.0.0.1:15053"},
		"a port of its own": {map[string]any{"DNS_CAPTURE": "true", "DNS_PROXY_ADDR": "10.0.0.1:99999"}, "127.0.0.1:15053"},
	} {
		if got := parseMetadata(metadata(t, c.says)).Resolver; got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
