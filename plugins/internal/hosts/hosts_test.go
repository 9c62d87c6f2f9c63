package hosts

import (
	"maps"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func TestProtocol(t *testing.T) {
	for in, want := range map[string]string{"http": "HTTP", "gRPC-Web": "GRPC-WEB", "Http_Proxy": "HTTP_PROXY", "": "", "SMTP": ""} {
		if got := Protocol(in); got != want {
			t.Errorf("Protocol(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	for in, want := range map[string]string{"unix:///a/b": "/a/b", "unix:/a": "/a", "unix://@a": "@a"} {
		if got, ok := Path(in); got != want || !ok {
			t.Errorf("Path(%q) = %q, %v", in, got, ok)
		}
	}
	if _, ok := Path("10.0.0.1"); ok {
		t.Error("an IP is no path")
	}
}

func TestVirtualAddress(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "10.0.0.1/32": "10.0.0.1", "10.0.0.0/8": "10.0.0.0/8", "2001:db8::1/128": "2001:db8::1", "a": "", "10.0.0.1/33": "",
	} {
		if got, ok := VirtualAddress(in); got != want || ok != (want != "") {
			t.Errorf("VirtualAddress(%q) = %q, %v", in, got, ok)
		}
	}
}

func TestValidName(t *testing.T) {
	for _, c := range []struct {
		name     string
		wildcard bool
		want     bool
	}{
		{"a.b", false, true},
		{"a.b.", false, true},
		{"_a.b-c", false, true},
		{"*.b", true, true},
		{"*.b", false, false},
		{"*", true, false},
		{"", true, false},
		{"a..b", false, false},
		{"-a.b", false, false},
		{"a b", false, false},
	} {
		if got := ValidName(c.name, c.wildcard); got != c.want {
			t.Errorf("ValidName(%q, %v) = %v", c.name, c.wildcard, got)
		}
	}
}

func TestAllLabels(t *testing.T) {
	e := &pb.Endpoint{Labels: map[string]string{"app": "a"}, Locality: "r/z/s", Cluster: "c", Network: "n", Node: "node"}
	want := map[string]string{
		"app": "a", RegionLabel: "r", ZoneLabel: "z", SubzoneLabel: "s", ClusterLabel: "c", NetworkLabel: "n", HostnameLabel: "node",
	}
	if got := AllLabels(e); !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if len(e.Labels) != 1 {
		t.Error("the endpoint's own labels changed")
	}
	e = &pb.Endpoint{Labels: map[string]string{NetworkLabel: "own", SubzoneLabel: "own"}, Locality: "r/z/s/more", Network: "n"}
	if got := AllLabels(e); got[NetworkLabel] != "own" || got[SubzoneLabel] != "s" {
		t.Error("a network's label wins over the network, a locality over its labels: ", got)
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		labels            map[string]string
		service, revision string
	}{
		{nil, "w", ""},
		{map[string]string{"app": "a", "version": "v"}, "a", "v"},
		{map[string]string{"app": "a", "app.kubernetes.io/name": "k", "app.kubernetes.io/version": "2"}, "k", "2"},
		{map[string]string{"service.istio.io/canonical-name": "c", "service.istio.io/canonical-revision": "r", "app": "a"}, "c", "r"},
	} {
		if s, r := Canonical(c.labels, "w"); s != c.service || r != c.revision {
			t.Errorf("Canonical(%v) = %q, %q", c.labels, s, r)
		}
	}
}

func TestTLSModeLocalityNetwork(t *testing.T) {
	if got := TLSMode(map[string]string{TLSModeLabel: "disabled"}, "sa"); got != TLSModeDisabled {
		t.Errorf("the label must win: %q", got)
	}
	if got := TLSMode(nil, "sa"); got != TLSModeIstio {
		t.Errorf("with a service account: %q", got)
	}
	if got := Locality("", map[string]string{LocalityLabel: "r.z.s"}); got != "r/z/s" {
		t.Errorf("locality %q", got)
	}
	if got := Locality("x/y", map[string]string{LocalityLabel: "r.z.s"}); got != "x/y" {
		t.Errorf("declared locality: %q", got)
	}
	if got := Network("", map[string]string{NetworkLabel: "n"}); got != "n" {
		t.Errorf("network %q", got)
	}
}
