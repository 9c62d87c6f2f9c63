package migrate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// read reads texts, and makes a plan of them.
func read(t *testing.T, deployment string, texts ...string) *Plan {
	t.Helper()
	in := &Input{}
	for _, text := range texts {
		if err := in.Read("test", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Make(in, deployment)
	if err != nil {
		t.Fatal(err)
	}
	usable(t, p)
	return p
}

// usable sees that what is written can be read by the program.
func usable(t *testing.T, p *Plan) {
	t.Helper()
	files, err := p.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		switch f.Name {
		case "settings.yaml":
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			settings.Flags(fs, settings.Defaults())
			at := filepath.Join(t.TempDir(), f.Name)
			if err := os.WriteFile(at, f.Text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := fs.Set(settings.SettingsFlag, at); err != nil {
				t.Fatal(err)
			}
			if _, _, err := settings.Load(fs, nil); err != nil {
				t.Errorf("settings.yaml: %v in\n%s", err, f.Text)
			}
		case "plugins.yaml":
			if _, err := manifest.Parse(f.Name, f.Text); err != nil {
				t.Errorf("%v in\n%s", err, f.Text)
			}
		default:
			for document := range strings.SplitSeq(string(f.Text), "\n---\n") {
				var o struct{ Kind, APIVersion string }
				if err := yaml.Unmarshal([]byte(document), &o); err != nil || o.Kind == "" || o.APIVersion == "" {
					t.Errorf("%s: %v in %s", f.Name, err, document)
				}
			}
		}
	}
}

// outcome is what becomes of a thing.
func (p *Plan) outcome(t *testing.T, what string) Outcome {
	t.Helper()
	at := slices.IndexFunc(p.Outcomes, func(o Outcome) bool { return o.What == what })
	if at < 0 {
		t.Fatalf("nothing is said of %s: %v", what, p.Outcomes)
	}
	return p.Outcomes[at]
}

// flag reports whether there is a setting of that name.
func (p *Plan) flag(name string) bool {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	settings.Flags(fs, settings.Defaults())
	return fs.Lookup(name) != nil
}

// deployed is an istiod with arguments and variables, each a line of YAML in flow style.
func deployed(args, env string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: mesh}
spec:
  template:
    metadata: {labels: {app: istiod}}
    spec:
      containers:
      - {name: discovery, args: [discovery, %s], env: [%s]}
`, args, env)
}

// TestRecorded: inputs as clusters have them, each with what has to come of it.
func TestRecorded(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(inputs) < 3 {
		t.Fatal(inputs, err)
	}
	for _, name := range inputs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p := read(t, "", string(text))
		report := &strings.Builder{}
		p.Report(report)
		files, _ := p.Files()
		all := report.String()
		for _, f := range files {
			all += string(f.Text)
		}
		if strings.Contains(all, "hunter2") {
			t.Errorf("%s: a secret is printed", name)
		}
		wanted := 0
		for line := range strings.Lines(string(text)) {
			want, ok := strings.CutPrefix(strings.TrimSpace(line), "# want: ")
			if !ok {
				continue
			}
			if wanted++; !strings.Contains(all, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, all)
			}
		}
		if wanted == 0 {
			t.Errorf("%s wants nothing", name)
		}
	}
}

// TestEveryVariable: each variable of istiod's has an outcome, and all that is written can be read.
func TestEveryVariable(t *testing.T) {
	for _, value := range []string{"true", "false", "7", "10m", "a.example/b", "{", ""} {
		var all []string
		for _, name := range settings.VariablesOfIstiod() {
			all = append(all, fmt.Sprintf("{name: %s, value: %q}", name, value))
		}
		p := read(t, "", deployed("", strings.Join(all, ", ")))
		for _, name := range settings.VariablesOfIstiod() {
			v, _ := settings.OfIstiod(name)
			o := p.outcome(t, "variable "+name)
			quiet := v.Fate == settings.Lacking && v.Is == "" && !strings.Contains(name, "WEBHOOK_CONFIG") && !strings.Contains(name, "NATIVE")
			if o.Fate == Differs && (o.Text == "" || value == "") || value != "" && o.Fate != Differs && quiet {
				t.Errorf("%s=%q %s: %s", name, value, o.Fate, o.Text)
			}
		}
	}
	var hidden []string
	for _, name := range settings.VariablesOfIstiod() {
		hidden = append(hidden, fmt.Sprintf("{name: %s, valueFrom: {secretKeyRef: {name: vault, key: hunter2}}}", name))
	}
	p := read(t, "", deployed("", strings.Join(hidden, ", ")))
	for _, name := range settings.VariablesOfIstiod() {
		v, _ := settings.OfIstiod(name)
		if o := p.outcome(t, "variable "+name); v.Fate != settings.Moot && name != "POD_NAMESPACE" &&
			(o.Fate != Differs || !strings.Contains(o.Text, "Secret vault")) {
			t.Errorf("%s of a Secret %s: %s", name, o.Fate, o.Text)
		}
	}
	if len(edits) < 20 {
		t.Errorf("%d variables are written into plugins.yaml", len(edits))
	}
	for name := range edits {
		if v, ok := settings.OfIstiod(name); !ok || v.Fate != settings.InPlugins {
			t.Errorf("%s is none for plugins.yaml", name)
		}
	}
}

func TestArguments(t *testing.T) {
	p := read(t, "", deployed(`"--monitoringAddr=:9999", --log_output_level, "default:debug,ads:info", --log_as_json, `+
		`--domain, $(DOMAIN), "--keepaliveMaxServerConnectionAge", 1h, --profile, --unheardOf, x, --ctrlz_port=1, stray,`+
		` --kubernetesApiQPS=many, "--meshConfig=$(NOWHERE)"`,
		`{name: DOMAIN, value: example.org}, {name: UNHEARD, value: hunter2}, {name: REVISION, value: canary}, {name: PILOT_ENABLE_AMBIENT, value: "true"}`))
	for name, want := range map[string]any{
		"monitoringAddr": ":9999", "logLevel": "debug", "logFormat": "json", "domain": "example.org",
		"keepaliveMaxServerConnectionAge": "1h", "revision": "canary", "namespace": "mesh", "grpcAddr": ":15010",
	} {
		if p.Settings[name] != want {
			t.Errorf("%s is %v, not %v", name, p.Settings[name], want)
		}
	}
	for what, text := range map[string]string{
		"--log_output_level": "coxswain log set", "--unheardOf": "no flag that is known",
		"--ctrlz_port": "has no effect", `argument "stray"`: "leave it out", "--kubernetesApiQPS": `"many"`,
		"--meshConfig": `"NOWHERE"`, "variable UNHEARD": "its value is not shown", "variable PILOT_ENABLE_AMBIENT": "ambient is not served",
	} {
		if !slices.ContainsFunc(p.Outcomes, func(o Outcome) bool { return o.What == what && strings.Contains(o.Text, text) }) {
			t.Errorf("%s: no %q in %v", what, text, p.Outcomes)
		}
	}
}

// TestCommands: what a container's command tells istiod counts as its arguments do; of what a shell
// is told it is said that it is not read.
func TestCommands(t *testing.T) {
	container := func(of string) *Plan {
		return read(t, "", fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: istiod, namespace: mesh}\n"+
			"spec: {template: {spec: {containers: [{name: pilot, %s}]}}}\n", of))
	}
	for of, want := range map[string]map[string]any{
		`command: [/usr/local/bin/pilot-discovery, discovery, --domain, x.y, "--monitoringAddr=:9999", --httpsAddr, ":9443"]`: {
			"domain": "x.y", "monitoringAddr": ":9999", "httpsAddr": ":9443"},
		`command: [pilot-discovery], args: [discovery, --domain, x.y]`:   {"domain": "x.y"},
		`command: [pilot-discovery, --domain=x.y], args: [discovery]`:    {"domain": "x.y"},
		`command: [tini, --, pilot-discovery, discovery, --domain, x.y]`: {"domain": "x.y", "command": "what it does is not known"},
		`command: [sh, -c, 'exec pilot-discovery "$@"', --], args: [discovery, --domain, x.y]`: {
			"domain": "x.y", "command": "what it does is not known"},
		`command: [sh, -c, exec /usr/local/bin/pilot-discovery discovery --domain hunter2]`: {
			"command": `"sh" starts istiod, and what it tells istiod is not read`,
		},
		`command: [sh, -c, exec /usr/local/bin/pilot-discovery]`: {"command": "write that into settings.yaml"},
		`args: [discovery, -n, other]`:                           {"namespace": "other"},
		`args: [discovery, -n=other]`:                            {"namespace": "other"},
		`args: [discovery, -nother]`:                             {"namespace": "other"},
		`args: [discovery, -x, other, --n, more]`: {
			"namespace": "mesh", "-x": "no flag that is known", "--n": "no flag that is known",
		},
		`args: [discovery, --, --domain=x.y]`: {"domain": nil, `argument "--domain=x.y"`: "it is no flag"},
	} {
		p := container(of)
		for name, value := range want {
			if p.flag(name) {
				if p.Settings[name] != value {
					t.Errorf("%s: %s is %v, not %v", of, name, p.Settings[name], value)
				}
			} else if o := p.outcome(t, name); o.Fate != Differs || !strings.Contains(o.Text, fmt.Sprint(value)) {
				t.Errorf("%s: %s %s: %s", of, name, o.Fate, o.Text)
			}
		}
		if report := fmt.Sprint(p.Outcomes); strings.Contains(report, "hunter2") ||
			want["command"] == nil && slices.ContainsFunc(p.Outcomes, func(o Outcome) bool { return o.What == "command" }) {
			t.Errorf("%s: %s", of, report)
		}
	}
}

// TestOnce: of what istiod is told one thing is said: not that it is in settings.yaml where it is
// taken out of it.
func TestOnce(t *testing.T) {
	p := read(t, "", deployed(`"--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA,NONSENSE"`, `{name: INJECT_ENABLED, value: "false"}`)+`
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector, labels: {istio.io/rev: default}}
`)
	said := 0
	for _, o := range p.Outcomes {
		if strings.Contains(o.What+o.Text, "tls-cipher-suites") {
			said++
		}
	}
	o := p.outcome(t, "--tls-cipher-suites")
	if said != 1 || o.Fate != Differs || !strings.Contains(o.Text, "is left out") || p.Settings["tls-cipher-suites"] != nil {
		t.Errorf("%d times: %s: %s", said, o.Fate, o.Text)
	}
	p = read(t, "", deployed(`--httpsAddr, ":9443"`, `{name: INJECT_ENABLED, value: "false"}, {name: ENABLE_CA_SERVER, value: "false"}`)+
		"---\n{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: theirs}}")
	if o := p.outcome(t, "--httpsAddr"); o.Fate != Moot || p.Settings["httpsAddr"] != nil {
		t.Errorf("%s: %s: %s", o.What, o.Fate, o.Text)
	}
	if o := p.outcome(t, "variable ENABLE_CA_SERVER"); o.Fate != Plugin {
		t.Errorf("%s: %s: %s", o.What, o.Fate, o.Text)
	}
}

// injector is the ConfigMap with templates, each a line of a flow mapping in YAML.
func injector(templates string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio-sidecar-injector, namespace: mesh}\n" +
		"data:\n  config: |\n    policy: enabled\n    templates: {" + templates + "}\n"
}

// TestTemplates: what templates ask for around the process is allowed by plugins.yaml, and said;
// templates by which istiod deploys Gateways don't count.
func TestTemplates(t *testing.T) {
	p := read(t, "", deployed("", "")+injector(`sidecar: '{{env "ZONE"}}{{expandenv "$RACK-$ZONE"}}{{getHostByName "a.example"}}', `+
		`mine: '{{env .Revision}}', kube-gateway: '{{env "GATEWAY"}}', plain: 'spec: {}'`))
	const of = "ConfigMap/istio-sidecar-injector"
	for what, want := range map[string]string{
		of + " template sidecar":      `env "ZONE", expandenv "RACK", expandenv "ZONE", getHostByName "a.example"`,
		of + " template mine":         "env with names that it makes as it runs",
		of + " template kube-gateway": "is otherwise in it does not count",
	} {
		if !slices.ContainsFunc(p.Outcomes, func(o Outcome) bool {
			return o.What == what && o.Fate == Differs && strings.Contains(strings.ReplaceAll(o.Text, "calls ", ""), want)
		}) {
			t.Errorf("%s: no %q in %v", what, want, p.Outcomes)
		}
	}
	if o := p.outcome(t, of); o.Fate != Same || !strings.HasSuffix(o.Text, "its templates are mine, plain, sidecar") {
		t.Errorf("%s: %s", o.Fate, o.Text)
	}
	if slices.ContainsFunc(p.Outcomes, func(o Outcome) bool { return o.What == of+" template plain" }) {
		t.Error("of a template that asks for nothing something is said")
	}
	set := string(p.Set)
	_, set, _ = strings.Cut(set, "name: injector")
	set, _, _ = strings.Cut(set, "name: validator")
	for _, want := range []string{"env: [RACK, ZONE]", "config:", "- a.example\n"} {
		if !strings.Contains(strings.ReplaceAll(set, "env:\n        - RACK\n        - ZONE\n", "env: [RACK, ZONE]"), want) {
			t.Errorf("%q is not in\n%s", want, set)
		}
	}
	if strings.Contains(set, "GATEWAY") || strings.Count(set, "ZONE") != 2 {
		t.Errorf("what is allowed is\n%s", set)
	}
}

// TestClassDefaults: a ConfigMap with defaults of a class is known by its label, and read where
// Gateways are deployed.
func TestClassDefaults(t *testing.T) {
	const defaults = `---
{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: mesh, labels: {gateway.istio.io/defaults-for-class: istio}}}
`
	for env, want := range map[string]Outcome{
		"": {Fate: Differs, Text: "manageGateways"},
		`{name: PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER, value: "true"}`: {Fate: Same, Text: "controller/gateway"},
	} {
		o := read(t, "", deployed("", env)+defaults).outcome(t, "ConfigMap/mine")
		if o.Fate != want.Fate || !strings.Contains(o.Text, want.Text) {
			t.Errorf("with %s it %s: %s", env, o.Fate, o.Text)
		}
	}
}

// TestRights: they are of the revision, in its namespace, and none of another name.
func TestRights(t *testing.T) {
	p := read(t, "", deployed("", `{name: REVISION, value: canary}, {name: SHARED_MESH_CONFIG, value: common}`))
	for _, want := range []string{
		"- istio-canary\n", "- common\n", "- istio-sidecar-injector-canary\n", "- coxswain-injector-canary\n",
		"name: coxswain-canary\n", "namespace: mesh\n",
	} {
		if !strings.Contains(string(p.Rights), want) {
			t.Errorf("%q is not in\n%s", want, p.Rights)
		}
	}
	for _, not := range []string{"istio-system", "- istio\n", "- coxswain-injector\n", "name: coxswain\n"} {
		if strings.Contains(string(p.Rights), not) {
			t.Errorf("%q is in\n%s", not, p.Rights)
		}
	}
	for document := range strings.SplitSeq(string(p.Rights), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(document), &role); strings.Contains(document, "\nrules:") && (err != nil || len(role.Rules) == 0) {
			t.Errorf("%v in %s", err, document)
		}
	}
	signs := read(t, "", deployed("",
		`{name: EXTERNAL_CA, value: ISTIOD_RA_KUBERNETES_API}, {name: K8S_SIGNER, value: a.example/b}, {name: ENABLE_CLUSTER_TRUST_BUNDLE_API, value: "true"}`))
	if !strings.Contains(string(signs.Rights), "signers") ||
		!strings.Contains(string(signs.Rights), "- a.example/b\n") ||
		strings.Contains(string(signs.Rights), "issuers.example.com") ||
		!strings.Contains(string(signs.Rights), "clustertrustbundles") {
		t.Errorf("%s", signs.Rights)
	}
}

// TestSeveralClusters: what Multi-Cluster Services need is added, with its rights.
func TestSeveralClusters(t *testing.T) {
	p := read(t, "", deployed("", `{name: ENABLE_MCS_HOST, value: "true"}, {name: ENABLE_MCS_SERVICE_DISCOVERY, value: `+
		`"true"}, {name: ENABLE_MCS_AUTO_EXPORT, value: "true"}, {name: MCS_API_GROUP, value: mcs.example}`))
	for _, want := range []string{"builtin: registry/mcs", "builtin: controller/exports", "group: mcs.example", "hosts: true", "discovery: true"} {
		if !strings.Contains(string(p.Set), want) {
			t.Errorf("%q is not in\n%s", want, p.Set)
		}
	}
	for _, want := range []string{"coxswain-multicluster", "- mcs.example\n", "- serviceimports\n", "coxswain-exports",
		"- mcs.example\n  resources:\n  - serviceexports\n  verbs:\n  - create\n", "- istio-serviceexport-controller-election\n"} {
		if !strings.Contains(string(p.Rights), want) {
			t.Errorf("%q is not in\n%s", want, p.Rights)
		}
	}
	if p := read(t, "", deployed("", `{name: ENABLE_MCS_HOST, value: "true"}`)); strings.Contains(string(p.Set), "registry/mcs") ||
		strings.Contains(string(p.Rights), "multicluster") {
		t.Errorf("hosts alone mean something:\n%s", p.Set)
	}
}

// TestInjectedBeside: pods that istiod injects into where nobody is asked about them here have to
// move first; those that ask for nothing, or are elsewhere, stay.
func TestInjectedBeside(t *testing.T) {
	const everywhere = `
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector, labels: {istio.io/rev: default}}
webhooks: [{name: auto.sidecar-injector.istio.io}]
`
	for _, c := range []struct{ kind, namespace, pods, more, by string }{
		{"Deployment", "mesh", `metadata: {labels: {sidecar.istio.io/inject: "true"}}`, "", "sidecar.istio.io/inject: true"},
		{"Deployment", "", `metadata: {annotations: {sidecar.istio.io/inject: "true"}}`, "", "sidecar.istio.io/inject: true"},
		{"DaemonSet", "mesh", `metadata: {annotations: {inject.istio.io/templates: gateway}}`, "", "inject.istio.io/templates"},
		{"StatefulSet", "mesh", `spec: {containers: [{name: istio-proxy, image: auto}]}`, "", "image: auto"},
		{"Deployment", "mesh", `metadata: {labels: {istio.io/rev: default}}`, "", "label istio.io/rev"},
		{"Deployment", "kube-system", `metadata: {labels: {sidecar.istio.io/inject: "true"}}`, "", "kube-system"},
		{"Deployment", "mesh", `spec: {}`,
			"\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: mesh, labels: {istio-injection: enabled}}}",
			"labels of the namespace"},
		{"Deployment", "mesh", `spec: {}`, everywhere, "all namespaces"},
		{"Deployment", "mesh", `spec: {}`, "", ""},
		{"Deployment", "mesh", `metadata: {labels: {sidecar.istio.io/inject: "false", istio.io/rev: default}}`, everywhere, ""},
		{"DaemonSet", "mesh", `spec: {hostNetwork: true}`, everywhere, ""},
		{"Deployment", "shop", `metadata: {labels: {sidecar.istio.io/inject: "true"}}`, everywhere, ""},
	} {
		other := fmt.Sprintf("---\napiVersion: apps/v1\nkind: %s\nmetadata: {name: other, namespace: %q}\nspec:\n  template:\n    %s%s",
			c.kind, c.namespace, c.pods, c.more)
		of := map[string]string{"kube-system": " of kube-system", "shop": " of shop"}[c.namespace]
		o := read(t, "", deployed("", "")+other).outcome(t, c.kind+"/other"+of)
		if c.by == "" && o.Fate != Same || c.by != "" && (o.Fate != Differs || !strings.Contains(o.Text, c.by) || !strings.Contains(o.Text, "move it")) {
			t.Errorf("%s of %q with %s%s %s: %s", c.kind, c.namespace, c.pods, c.more, o.Fate, o.Text)
		}
	}
}

// TestPods: where istiod's pods run, and what they may take, is copied; what is istiod's own is
// not.
func TestPods(t *testing.T) {
	const text = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: mesh}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: istiod}, annotations: {prometheus.io/port: "15014", example.com/team: mesh}}
    spec:
      nodeSelector: {pool: system}
      tolerations: [{key: system, operator: Exists}]
      priorityClassName: high
      imagePullSecrets: [{name: pull}]
      serviceAccountName: istiod
      dnsPolicy: ClusterFirst
      containers:
      - {name: discovery, args: [discovery], image: istio/pilot, env: [{name: SECRET, value: hunter2}], resources: {requests: {cpu: 300m}, limits: {memory: 3Gi}}}
`
	p := read(t, "", text)
	for _, want := range []string{
		"replicas: 3", "pool: system", "key: system", "priorityClassName: high", "- name: pull", "cpu: 300m",
		"memory: 3Gi", "name: coxswain", "namespace: mesh", "example.com/team: mesh",
	} {
		if !strings.Contains(string(p.Pods), want) {
			t.Errorf("%q is not in\n%s", want, p.Pods)
		}
	}
	for _, not := range []string{"15014", "hunter2", "istio/pilot", "serviceAccount", "discovery", "dnsPolicy"} {
		if strings.Contains(string(p.Pods), not) {
			t.Errorf("%q is in\n%s", not, p.Pods)
		}
	}
	if p := read(t, "", deployed("", "")); len(p.Pods) > 0 {
		t.Errorf("of nothing comes\n%s", p.Pods)
	}
}

// TestBad: what can't be read is said with its place, and nothing of it is repeated.
func TestBad(t *testing.T) {
	for text, want := range map[string]string{
		"a: [hunter2": "document 1 is no YAML", "a: hunter2": "no apiVersion", "[hunter2]": "no Kubernetes object",
		"{apiVersion: v1, kind: Service, spec: hunter2}":           "Service/ is not as its kind is",
		"kind: List\napiVersion: v1\nitems: [{a: hunter2}]":        "no Kubernetes object",
		"{apiVersion: apps/v1, kind: DaemonSet, spec: hunter2}":    "DaemonSet/ is not as its kind is",
		"# nothing\n---\nkind: x\napiVersion: z\n---\nb: {hunter2": "document 3 is no YAML",
	} {
		err := (&Input{}).Read("file", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
	if err := (&Input{}).Read("file", strings.NewReader(strings.Repeat("# a line that says nothing\n", 1<<20))); err == nil ||
		!strings.Contains(err.Error(), "bytes") {
		t.Errorf("a long file: %v", err)
	}
	deep := "{apiVersion: v1, kind: X, a: " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}"
	if err := (&Input{}).Read("file", strings.NewReader(deep)); err == nil {
		t.Error("20,000 levels are read")
	}
	for _, c := range []struct{ text, name, want string }{
		{"", "", "no Deployment runs istiod"}, {deployed("", ""), "other", "no Deployment is called other"},
		{deployed("", "") + "---" + strings.Replace(deployed("", ""), "name: istiod", "name: istiod-canary", 1), "", "--deployment says which"},
	} {
		in := &Input{}
		if err := in.Read("file", strings.NewReader(c.text)); err != nil {
			t.Fatal(err)
		}
		if _, err := Make(in, c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, not %q", err, c.want)
		}
	}
}
