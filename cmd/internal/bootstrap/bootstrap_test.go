package bootstrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
)

// good is a config that can be.
func good() Config {
	return Config{
		Type: Sidecar, Name: "client-1", Namespace: "shop", IP: "10.0.0.7", Domain: "cluster.local",
		Labels: map[string]string{"app": "client"}, ClusterID: "Kubernetes", Locality: "r1/z1", IstioVersion: "1.31.0",
		XDS: "127.0.0.1:15010", Protocol: SotW, Admin: "127.0.0.1:15000",
	}
}

func TestNode(t *testing.T) {
	c := good()
	c.Interception, c.Network = "NONE", "n1"
	c.Metadata = map[string]any{"CLUSTER_ID": "other", "PROXY_CONFIG": map[string]any{"concurrency": 2.0}}
	raw, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var b bootstrapv3.Bootstrap
	if err := protojson.Unmarshal(raw, &b); err != nil {
		t.Fatal(err)
	}
	if got, want := b.Node.Id, "sidecar~10.0.0.7~client-1.shop~shop.svc.cluster.local"; got != want {
		t.Errorf("id %s, want %s", got, want)
	}
	if got, want := b.Node.Cluster, "client.shop"; got != want {
		t.Errorf("cluster %s, want %s", got, want)
	}
	if got := b.Node.Locality; got.Region != "r1" || got.Zone != "z1" || got.SubZone != "" {
		t.Errorf("locality %v", got)
	}
	m := b.Node.Metadata.AsMap()
	for key, want := range map[string]any{
		"NAME": "client-1", "NAMESPACE": "shop", "INSTANCE_IPS": "10.0.0.7", "ISTIO_VERSION": "1.31.0", "COXSWAIN_NO_AGENT": "true",
		"INTERCEPTION_MODE": "NONE", "NETWORK": "n1", "CLUSTER_ID": "other",
	} {
		if m[key] != want {
			t.Errorf("%s is %v, want %v", key, m[key], want)
		}
	}
	if m["LABELS"].(map[string]any)["app"] != "client" || m["PROXY_CONFIG"].(map[string]any)["concurrency"] != 2.0 {
		t.Errorf("metadata %v", m)
	}
}

func TestMistakes(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"type: ":         func(c *Config) { c.Type = "waypoint" },
		"protocol: ":     func(c *Config) { c.Protocol = "rest" },
		"name":           func(c *Config) { c.Name = "" },
		"ip: ":           func(c *Config) { c.IP = "localhost" },
		"locality: ":     func(c *Config) { c.Locality = "a/b/c/d" },
		"~ separates":    func(c *Config) { c.Namespace = "a~b" },
		"xDS address: ":  func(c *Config) { c.XDS = "15010" },
		"admin address:": func(c *Config) { c.Admin = "127.0.0.1:x" },
		"sds: ":          func(c *Config) { c.Certificates.SDS = "/tmp" },
		"header: ":       func(c *Config) { c.Headers = map[string]string{":path": "x"} },
		"metadata: ":     func(c *Config) { c.Metadata = map[string]any{"a": struct{}{}} },
	} {
		c := good()
		spoil(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// TestEnvoyTakesIt lets a real Envoy read each form.
func TestEnvoyTakesIt(t *testing.T) {
	binary := envoy.Binary(t)
	for name, change := range map[string]func(*Config){
		"sidecar": func(*Config) {},
		"delta":   func(c *Config) { c.Protocol = Delta },
		"certs":   func(c *Config) { c.Certificates = certificates(t, "") },
		"SDS":     func(c *Config) { c.Certificates = certificates(t, t.TempDir()) },
		"router":  func(c *Config) { c.Type, c.Admin = Router, "" },
		"headers": func(c *Config) { c.Headers, c.RTDS = map[string]string{"x-api-key": "k"}, "tuning" },
		"socket":  func(c *Config) { c.XDS = "unix:///run/coxswain.sock" },
		"name":    func(c *Config) { c.XDS = "coxswain.example:15010" },
		"IPv6":    func(c *Config) { c.IP, c.XDS = "fd00::7", "[::1]:15010" },
	} {
		t.Run(name, func(t *testing.T) {
			c := good()
			change(&c)
			raw, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "bootstrap.json")
			if err := os.WriteFile(file, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(binary, "--mode", "validate", "-l", "error", "-c", file).CombinedOutput(); err != nil {
				t.Errorf("%v: %s\n%s", err, out, raw)
			}
		})
	}
}
