package render_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
)

// TestProxyConfig: of what several say, the object that selects the pod counts, then the
// annotation, the namespace's object, the root namespace's, and the mesh; variables are joined.
func TestProxyConfig(t *testing.T) {
	m := &mesh.MeshConfig{DefaultConfig: &mesh.ProxyConfig{StatusPort: 1, ProxyMetadata: map[string]string{"A": "mesh", "MESH": "1"}}}
	spec := func(app, image, a string, concurrency int32) *networking.ProxyConfig {
		p := &networking.ProxyConfig{
			EnvironmentVariables: map[string]string{"A": a, a: "1"}, Image: &networking.ProxyImage{ImageType: image},
			Concurrency: wrapperspb.Int32(concurrency),
		}
		if app != "" {
			p.Selector = &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": app}}
		}
		return p
	}
	objects := render.ProxyObjects{}
	for key, of := range map[string]*networking.ProxyConfig{
		"shop/web": {
			Selector:             &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": "web"}},
			EnvironmentVariables: map[string]string{"A": "WEB", "WEB": "1"}, Image: &networking.ProxyImage{ImageType: "distroless"},
		},
		"shop/all": spec("", "", "SHOP", 3), "shop/zeroth": spec("", "debug", "LATER", 9), "shop/zweb": spec("web", "debug", "LATER", 9),
		"istio-system/all": spec("", "debug", "ROOT", 2),
		"other/all":        spec("", "debug", "OTHER", 9), "other/web": spec("web", "debug", "OTHER", 9),
	} {
		objects.Add(key, of)
	}
	note := map[string]string{"proxy.istio.io/config": `{concurrency: 7, statusPort: 9, image: {imageType: debug}, proxyMetadata: {A: pod, POD: "1"}}`}
	for _, c := range []struct {
		app, want string
		notes     map[string]string
	}{
		{"web", "distroless 7 9 map[A:WEB MESH:1 POD:1 ROOT:1 SHOP:1 WEB:1]", note},
		{"web", "distroless 3 1 map[A:WEB MESH:1 ROOT:1 SHOP:1 WEB:1]", nil},
		{"else", "debug 7 9 map[A:pod MESH:1 POD:1 ROOT:1 SHOP:1]", note},
		{"else", " 3 1 map[A:SHOP MESH:1 ROOT:1 SHOP:1]", nil},
	} {
		p, err := render.ProxyConfig(m, objects.Concerning("istio-system", "shop", map[string]string{"app": c.app}), c.notes)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.GetImage().GetImageType(), " ", p.GetConcurrency().GetValue(), " ", p.StatusPort, " ", p.ProxyMetadata); got != c.want {
			t.Errorf("%s %v: %s; it is to be %s", c.app, c.notes, got, c.want)
		}
	}
	if m.DefaultConfig.ProxyMetadata["A"] != "mesh" {
		t.Error("the mesh's own settings were changed")
	}
	if _, err := render.ProxyConfig(m, nil, map[string]string{"proxy.istio.io/config": "nothingLikeIt: [", "a": ""}); err == nil {
		t.Error("an annotation that is no YAML is taken")
	}
}

// TestProxyConfigThatIsWrong: what no proxy could run with is refused with its line, as by istiod.
func TestProxyConfigThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"concurrency: 2\nstatusPort: 0":                       "line 2: statusPort: ",
		"statusPort: 70000":                                   "line 1: statusPort: ",
		"drainDuration: 1ms":                                  "drainDuration: ",
		"drainDuration: 0s":                                   "drainDuration: ",
		"discoveryAddress: a b":                               "discoveryAddress: ",
		"configPath: ''":                                      "configPath: ",
		"{proxyAdminPort: 0, serviceCluster: ''}":             "serviceCluster: ",
		"privateKeyProvider: {cryptomb: {}}":                  "privateKeyProvider.cryptomb.pollDelay: ",
		"tracing:\n  zipkin:\n    address: x":                 "line 3: tracing.zipkin.address: ",
		"tracing: {zipkin: {address: '$(HOST_IP):9411'}}":     "",
		"{statusPort: 15099, drainDuration: 7s, tracing: {}}": "",
	} {
		_, err := render.ProxyConfig(&mesh.MeshConfig{}, nil, map[string]string{"proxy.istio.io/config": text})
		switch {
		case want == "" && err != nil:
			t.Errorf("%q is refused: %v", text, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), "annotation proxy.istio.io/config: line ") || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v; it is to name %q", text, err, want)
		}
	}
}
