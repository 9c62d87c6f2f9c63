package render_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	api "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
)

// fixture is how an input of Istio's own tests was injected into.
type fixture struct {
	in, want string
	// values are laid over the usual ones.
	values string
	// file is one with values of an installation (IstioOperator).
	file string
	// old is whether the cluster's nodes know no native sidecars.
	old bool
	// user is who OpenShift has pods of the namespace run as.
	user       int64
	compliance string
	mesh       func(m *api.MeshConfig)
	// error is a part of the error that is wanted instead.
	error string
}

// hub is where the images are that the fixtures were recorded with.
const hub = "global: {hub: registry.istio.io/testing, tag: latest}\n"

const (
	cni    = "pilot: {cni: {enabled: true}}\n"
	multus = "pilot: {cni: {enabled: true, provider: multus}}\n"
	holds  = "global: {proxy: {holdApplicationUntilProxyStarts: true}}\n"
	probes = "global: {proxy: {statusPort: 123, readinessInitialDelaySeconds: 100, readinessPeriodSeconds: 200, readinessFailureThreshold: 300}}\n"
	// openshift is the last of the users that OpenShift has given the namespace of its fixtures.
	openshift = 1000629999
)

func tproxy(m *api.MeshConfig) { m.DefaultConfig.InterceptionMode = api.ProxyConfig_TPROXY }

func enriched(m *api.MeshConfig) {
	m.ExtensionProviders = append(m.ExtensionProviders,
		&api.MeshConfig_ExtensionProvider{Name: "otel", Provider: &api.MeshConfig_ExtensionProvider_Opentelemetry{
			Opentelemetry: &api.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider{
				Service: "otel-collector.observability.svc.cluster.local", Port: 4317,
				ServiceAttributeEnrichment: api.MeshConfig_ExtensionProvider_OTEL_SEMANTIC_CONVENTIONS,
			},
		}})
}

// special are fixtures that were recorded with settings of their own.
var special = []fixture{
	{in: "hello.yaml", want: "hello.yaml.cni.injected", values: "pilot: {cni: {enabled: true, provider: default}}\nglobal: {network: network1}\n"},
	{in: "hello.yaml", want: "hello.yaml.proxyImageName.injected", values: "global: {proxy: {image: proxyTest}}\n"},
	{in: "hello.yaml", want: "hello.yaml.proxyInitImageName.injected", values: "global: {proxy_init: {image: proxyInitTest}}\n"},
	{in: "hello.yaml", want: "hello-tproxy.yaml.injected", mesh: tproxy},
	{in: "hello.yaml", want: "hello-always.yaml.injected", values: "global: {imagePullPolicy: Always}\n"},
	{in: "hello.yaml", want: "hello-never.yaml.injected", values: "global: {imagePullPolicy: Never}\n"},
	{in: "hello.yaml", want: "hello-old-version.yaml.injected", old: true},
	{in: "format-duration.yaml", mesh: func(m *api.MeshConfig) { m.DefaultConfig.DrainDuration = durationpb.New(23 * time.Second) }},
	{in: "traffic-params.yaml", values: `global: {proxy: {includeIPRanges: "127.0.0.1/24,10.96.0.1/24", ` +
		`excludeIPRanges: "10.96.0.2/24,10.96.0.3/24", excludeInboundPorts: "4,5,6", statusPort: 0}}`},
	{in: "status_params.yaml", values: probes},
	{in: "kubevirtInterfaces.yaml", values: probes},
	{in: "reroute-virtual-interfaces.yaml", values: probes},
	{in: "hello.yaml", want: "hello-image-secrets-in-values.yaml.injected", file: "hello-image-secrets-in-values.iop.yaml"},
	{in: "hello-image-pull-secret.yaml", want: "hello-multiple-image-secrets.yaml.injected", file: "hello-image-secrets-in-values.iop.yaml"},
	{in: "hello.yaml", want: "hello-template-in-values.yaml.injected", file: "hello-template-in-values.iop.yaml"},
	{in: "hello.yaml", want: "hello-mount-mtls-certs.yaml.injected", values: "global: {mountMtlsCerts: true}\n"},
	{in: "hello.yaml", want: "hello-cncf-networks.yaml.injected", values: multus},
	{in: "hello-existing-cncf-networks.yaml", values: multus},
	{in: "hello-existing-cncf-networks-json.yaml", values: multus},
	{in: "hello.yaml", want: "hello.proxyHoldsApplication.yaml.injected", values: holds},
	{in: "hello-probes.yaml", want: "hello-probes.proxyHoldsApplication.yaml.injected", values: holds},
	{in: "hello-probes-noProxyHoldApplication-ProxyConfig.yaml", values: holds},
	{in: "cronjob.yaml", want: "cronjob-old-version.yaml.injected", old: true},
	{in: "daemonset.yaml", want: "daemonset-old-version.yaml.injected", old: true},
	{in: "job.yaml", want: "job-old-version.yaml.injected", old: true},
	{in: "pod.yaml", want: "pod-old-version.yaml.injected", old: true},
	{in: "replicaset.yaml", want: "replicaset-old-version.yaml.injected", old: true},
	{in: "statefulset.yaml", want: "statefulset-old-version.yaml.injected", old: true},
	{in: "native-sidecar.yaml", want: "native-sidecar-old-version.yaml.injected", old: true},
	{in: "native-sidecar-opt-in.yaml", old: true},
	{in: "native-sidecar-opt-out.yaml", old: true},
	{in: "traffic-annotations-bad-includeipranges.yaml", error: "includeipranges"},
	{in: "traffic-annotations-bad-excludeipranges.yaml", error: "excludeipranges"},
	{in: "traffic-annotations-bad-includeinboundports.yaml", error: "includeinboundports"},
	{in: "traffic-annotations-bad-excludeinboundports.yaml", error: "excludeinboundports"},
	{in: "traffic-annotations-bad-excludeoutboundports.yaml", error: "excludeoutboundports"},
	{in: "traffic-annotations.yaml", mesh: func(m *api.MeshConfig) {
		m.DefaultConfig.ProxyMetadata = map[string]string{"ISTIO_META_TLS_CLIENT_KEY": "/etc/identity/client/keys/client-key.pem"}
	}},
	{in: "proxy-override-runas.yaml", want: "proxy-override-runas.yaml.cni.injected", values: cni},
	{in: "proxy-override-runas.yaml", want: "proxy-override-runas.yaml.tproxy.injected", mesh: tproxy},
	{in: "proxy-override-args.yaml", want: "proxy-override-args-native.yaml.injected"},
	{in: "custom-template.yaml", file: "custom-template.iop.yaml"},
	{in: "merge-probers.yaml", values: holds},
	{in: "hello-tracing-disabled.yaml", mesh: func(m *api.MeshConfig) { m.DefaultConfig.Tracing = &api.Tracing{} }},
	{in: "hello-openshift.yaml", values: cni, user: openshift},
	{in: "hello-openshift-custom-injection.yaml", values: cni, user: openshift},
	{in: "hello-openshift-tproxy.yaml", values: cni, user: openshift},
	{in: "hello-probes-localhost.yaml", mesh: func(m *api.MeshConfig) {
		m.InboundTrafficPolicy = &api.MeshConfig_InboundTrafficPolicy{Mode: api.MeshConfig_InboundTrafficPolicy_LOCALHOST}
	}},
	{in: "proxy-resources-null.yaml", file: "proxy-resources-null.iop.yaml"},
	{in: "proxy-resources-null-no-init.yaml", file: "proxy-resources-null.iop.yaml"},
	{in: "proxy-resources-zero.yaml", file: "proxy-resources-zero.iop.yaml"},
	{in: "proxy-resources-memory-null.yaml", file: "proxy-resources-memory-null.iop.yaml"},
	{in: "proxy-resources-mixed-null.yaml", file: "proxy-resources-mixed-null.iop.yaml"},
	{in: "sidecar-spire.yaml", file: "spire-template.iop.yaml"},
	{in: "gateway-spire.yaml", file: "spire-template.iop.yaml"},
	{in: "hello-otel-semconv.yaml", mesh: enriched},
	{in: "hello.yaml", want: "hello-fips-140-3.yaml.injected", compliance: "fips-140-3"},
}

// TestFixtures: what Istio's own tests expect of its injector.
func TestFixtures(t *testing.T) {
	dir := shared.Dir(t, "fixtures/inject")
	all := slices.Clone(special)
	listed := map[string]bool{}
	for i := range all {
		if all[i].want == "" {
			all[i].want = all[i].in + ".injected"
		}
		listed[all[i].want] = true
	}
	wanted, err := filepath.Glob(filepath.Join(dir, "*.injected"))
	if err != nil || len(wanted) < 100 {
		t.Fatal(err, len(wanted))
	}
	for _, file := range wanted {
		if name := filepath.Base(file); !listed[name] {
			all = append(all, fixture{in: strings.TrimSuffix(name, ".injected"), want: name})
		}
	}
	for _, f := range all {
		t.Run(f.want, func(t *testing.T) { f.check(t, dir) })
	}
}

func read(t *testing.T, parts ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func documents(t *testing.T, text []byte) (all []map[string]any) {
	t.Helper()
	for _, chunk := range protoyaml.Split(text) {
		var m map[string]any
		if err := yaml.Unmarshal(chunk.Text, &m); err != nil {
			t.Fatal(err)
		}
		if m != nil {
			all = append(all, m)
		}
	}
	return all
}

// settings are those that a fixture was recorded with.
func (f fixture) settings(t *testing.T, dir string) *render.Settings {
	values := map[string]any{}
	layers := []string{hub, f.values}
	if f.file != "" {
		var operator struct {
			Spec struct {
				Values map[string]any `json:"values"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(read(t, dir, f.file), &operator); err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(operator.Spec.Values)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, string(text))
	}
	for _, text := range layers {
		more := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &more); err != nil {
			t.Fatal(err)
		}
		join(values, more)
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	s, err := render.Read("", string(text), render.Names{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func join(under, over map[string]any) {
	for k, v := range over {
		a, ok := under[k].(map[string]any)
		b, both := v.(map[string]any)
		if ok && both {
			join(a, b)
		} else {
			under[k] = v
		}
	}
}

func (f fixture) check(t *testing.T, dir string) {
	m := meshdefaults.Defaults()
	if f.mesh != nil {
		f.mesh(m)
	}
	o := &render.Offline{
		Settings: f.settings(t, dir), Mesh: m, Native: !f.old, Compliance: f.compliance, User: f.user, Group: f.user,
		Skipped: func(what, why string) { t.Logf("%s: %s", what, why) },
	}
	in := documents(t, read(t, dir, f.in))
	var got []map[string]any
	for _, d := range in {
		is, err := o.Object(d)
		if f.error != "" {
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), f.error) {
				t.Fatalf("the error is %v; %q is to be in it", err, f.error)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, is)
	}
	text := read(t, dir, f.want)
	is := pods(t, got)
	if !strings.Contains(string(text), "GOMAXPROCS") { // Istio's templates have it since these were recorded; test/inject asks a living istiod.
		is = without(is, "GOMAXPROCS").([]any)
	}
	if diff := cmp.Diff(pods(t, documents(t, text)), is); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// without leaves out what has a name.
func without(tree any, name string) any {
	switch at := tree.(type) {
	case map[string]any:
		for k, v := range at {
			at[k] = without(v, name)
		}
	case []any:
		at = slices.DeleteFunc(at, func(e any) bool { m, _ := e.(map[string]any); return m["name"] == name })
		for i, v := range at {
			at[i] = without(v, name)
		}
		return at
	}
	return tree
}

// pods returns what of objects pods are made of, in a form that can be compared.
func pods(t *testing.T, objects []map[string]any) (all []any) {
	for _, o := range objects {
		if items, ok := o["items"].([]any); ok {
			for _, i := range items {
				all = append(all, pods(t, []map[string]any{i.(map[string]any)})...)
			}
			continue
		}
		meta, spec := at(o, "spec", "template", "metadata"), at(o, "spec", "template", "spec")
		switch o["kind"] {
		case "Pod":
			meta, spec = at(o, "metadata"), at(o, "spec")
		case "CronJob":
			meta, spec = at(o, "spec", "jobTemplate", "metadata"), at(o, "spec", "jobTemplate", "spec", "template", "spec")
		}
		pod := &corev1.Pod{}
		text, err := json.Marshal(map[string]any{"metadata": meta, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, pod); err != nil {
			t.Fatal(err)
		}
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for _, c := range list {
				if c.Name == "grpc-bootstrap-init" { // docs/differences.md: the script is written anew.
					c.Command[2] = "script"
				}
				for i := range c.Env {
					c.Env[i].Value = plain(c.Env[i].Value)
				}
			}
		}
		for k, v := range pod.Annotations {
			pod.Annotations[k] = plain(v)
		}
		text, _ = json.Marshal(pod)
		var tree any
		_ = json.Unmarshal(text, &tree)
		all = append(all, map[string]any{"kind": o["kind"], "name": at(o, "metadata")["name"], "pod": tree})
	}
	return all
}

func at(m map[string]any, keys ...string) map[string]any {
	for _, k := range keys {
		m, _ = m[k].(map[string]any)
	}
	return m
}

// plain writes JSON in one way, and drops spaces around texts.
func plain(text string) string {
	var v any
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") || json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	out, _ := json.Marshal(v)
	return string(out)
}
