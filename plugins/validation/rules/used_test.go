package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	mesh "istio.io/api/mesh/v1alpha1"
)

var quotedID = regexp.MustCompile(`"((COX|IST)\d{4})"`)

// used returns the codes in this package's source.
func used(t *testing.T) (ids []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quotedID.FindAllStringSubmatch(string(text), -1) {
			ids = append(ids, m[1])
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// meshDefaults has what a mesh must have.
func meshDefaults() *mesh.MeshConfig {
	return &mesh.MeshConfig{
		RootNamespace: "istio-system", TrustDomain: "cluster.local", ConnectTimeout: durationpb.New(10 * time.Second),
		ProxyListenPort: 15001, ProxyInboundListenPort: 15006,
		DefaultConfig: &mesh.ProxyConfig{
			ConfigPath: "./etc/istio/proxy", BinaryPath: "/usr/local/bin/envoy", DiscoveryAddress: "istiod.istio-system.svc:15012",
			ClusterName:   &mesh.ProxyConfig_ServiceCluster{ServiceCluster: "istio-proxy"},
			DrainDuration: durationpb.New(45 * time.Second), ProxyAdminPort: 15000, StatusPort: 15020,
		},
	}
}
