package chart_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// shop is a mesh: a gateway that leads to a backend.
func shop(edge string, backend *mesh.Backend) string {
	_, listen, _ := strings.Cut(edge, ":")
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1, ports: {http: %d}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {istio: ingressgateway}
  servers: [{bind: 127.0.0.1, port: {number: %s, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [edge]
  http: [{route: [{destination: {host: web.shop, port: {number: 80}}}]}]
`, backend.Port, listen)
}

// TestUpgrade: the last release's chart is upgraded to this one, and back.
func TestUpgrade(t *testing.T) {
	need.All(t)
	t.Parallel()
	last, err := program.LastRelease("../..")
	if err != nil {
		t.Fatal(err)
	}
	source := t.TempDir()
	built, err := last.Build("../..", source, "./cmd/coxswain")
	if err != nil {
		t.Fatal(err)
	}
	// API servers that are built of their module don't know their version: they say 0.0.0.
	about := filepath.Join(source, "deploy/chart/Chart.yaml")
	text, err := os.ReadFile(about)
	if err == nil {
		err = os.WriteFile(about, regexp.MustCompile(`(?m)^kubeVersion:.*\n`).ReplaceAll(text, nil), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	upgrades(t, last.Version, packOf(t, source, last.Version), func(t *testing.T, c *kube.Cluster) *mesh.Plane {
		return pods(t, c, filepath.Join(built, "coxswain"), 5)
	})
}

// TestUpgradesUnderTraffic: the same from a chart of this source that has an older version, which
// builds no other program.
func TestUpgradesUnderTraffic(t *testing.T) {
	t.Parallel()
	upgrades(t, "v0.0.9", pack(t, "v0.0.9"), func(t *testing.T, c *kube.Cluster) *mesh.Plane {
		return started(t, c, wait.Address(t))
	})
}

// upgrades installs an older chart, whose program begin starts, upgrades it to this one, rolls that
// back and uninstalls it, as each one's program takes the other's place. What users wrote lives on,
// what they write meanwhile is served, and no request of an Envoy's clients fails.
func upgrades(t *testing.T, version, older string, begin func(*testing.T, *kube.Cluster) *mesh.Plane) {
	t.Helper()
	newer := pack(t, "v9.9.9")
	c := kube.Start(t)
	on := func(args ...string) {
		t.Helper()
		if _, err := helm(t, slices.Concat([]string{"--kubeconfig", c.Kubeconfig, "--namespace", namespace}, args)...); err != nil {
			t.Fatal(err)
		}
	}
	c.Kubectl(t, "create", "namespace", namespace)
	on(slices.Concat([]string{"install", "istiod", older}, named)...)
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "120s")
	c.Kubectl(t, "create", "namespace", "shop")
	edge, one, other := wait.Address(t), mesh.NewBackend(t, "one"), mesh.NewBackend(t, "other")
	c.Apply(t, shop(edge, one))
	before := kept(t, c)

	was := begin(t, c)
	var serving atomic.Pointer[mesh.Plane]
	serving.Store(was)
	ads := mesh.NewRelay(t, filepath.Join(t.TempDir(), "ads"), func() string { return serving.Load().XDS })
	admin := wait.Address(t)
	bootstrap := was.Bootstrap(t, "--xds", ads.Address, "--type", "router", "--name", "edge", "--labels",
		"istio=ingressgateway", "--admin", admin)
	e := envoy.Start(t, "edge", admin, bootstrap)
	e.Ready(t)
	target := mesh.Target{Address: edge, Host: "web.shop", Path: "/"}
	answers(t, target, one)
	traffic := mesh.NewTraffic(t, target)

	// replaces is what a Deployment's pods do: the next one is ready before the last one ends.
	// While both are there they tell proxies the same.
	replaces := func(next *mesh.Plane) {
		t.Helper()
		c.Apply(t, shop(edge, other))
		answers(t, target, other)
		for _, kind := range []string{"cluster.v3.Cluster", "listener.v3.Listener"} {
			agree(t, "type.googleapis.com/envoy.config."+kind, bootstrap, serving.Load(), next)
		}
		if code := serving.Swap(next).Stop(t); code != 0 {
			t.Errorf("it ends with %d", code)
		}
		c.Apply(t, shop(edge, one))
		answers(t, target, one)
		if log := next.Log(); strings.Contains(log, "forbidden") {
			t.Errorf("it lacks rights: %s", log)
		}
	}
	on(slices.Concat([]string{"upgrade", "istiod", newer}, named)...)
	says(t, c, "deployment/istiod", `{.metadata.labels.app\.kubernetes\.io/version}`, "9.9.9")
	replaces(started(t, c, wait.Address(t)))
	on("rollback", "istiod", "1")
	says(t, c, "deployment/istiod", `{.metadata.labels.app\.kubernetes\.io/version}`,
		strings.TrimPrefix(version, "v"))
	replaces(begin(t, c))
	if after := kept(t, c); !slices.Equal(before, after) {
		t.Errorf("objects were made anew: %q, %q", before, after)
	}
	on("uninstall", "istiod")
	serving.Load().Stop(t)
	answers(t, target, one)
	if asked, failed := traffic.Stop(); asked == 0 || len(failed) > 0 {
		t.Errorf("of %d requests %d failed: %q", asked, len(failed), failed)
	} else {
		t.Logf("%d requests, none failed", asked)
	}
	if after := kept(t, c); !slices.Equal(before[:4], after[:4]) {
		t.Errorf("what users wrote went with the release: %q, %q", before, after)
	}
}

// kept are the identities of what lives through upgrades: what users wrote, and by what names
// proxies and tools find the control plane.
func kept(t *testing.T, c *kube.Cluster) (ids []string) {
	t.Helper()
	for _, o := range []string{
		"shop serviceentry/web", "shop gateways.networking.istio.io/edge", "shop virtualservice/web",
		namespace + " configmap/istio", namespace + " service/istiod", namespace + " serviceaccount/istiod", namespace + " deployment/istiod",
	} {
		in, object, _ := strings.Cut(o, " ")
		ids = append(ids, object+" "+c.Kubectl(t, "-n", in, "get", object, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}"))
	}
	return ids
}

// agree waits until two control planes tell a proxy the same.
func agree(t *testing.T, kind string, bootstrap []byte, a, b *mesh.Plane) {
	t.Helper()
	wait.For(t, "both say the same", func() error {
		these, those := a.Fetch(t, bootstrap, kind), b.Fetch(t, bootstrap, kind)
		if len(these) == 0 || len(these) != len(those) {
			return fmt.Errorf("of %s there are %d and %d", kind, len(these), len(those))
		}
		for _, r := range these {
			if !slices.ContainsFunc(those, func(o *anypb.Any) bool { return proto.Equal(r, o) }) {
				return fmt.Errorf("%s is another one there: %v", kind, r)
			}
		}
		return nil
	})
}

func answers(t *testing.T, target mesh.Target, by *mesh.Backend) {
	t.Helper()
	wait.For(t, by.Name+" answers", func() error {
		code, body, err := target.Ask(t.Context())
		if err == nil && (code != 200 || body != by.Name) {
			err = errors.New(body)
		}
		return err
	})
}
