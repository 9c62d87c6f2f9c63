package chart_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// TestMigratesProfiles: of every profile of istiod's chart `coxswain migrate` makes files that can
// be used, and says what becomes of each argument, variable, mount and object.
func TestMigratesProfiles(t *testing.T) {
	need.All(t)
	t.Parallel()
	chart := filepath.Join(istios(t), "istio-control/istio-discovery")
	files, err := filepath.Glob(filepath.Join(chart, "files", "profile-*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	sets := [][]string{
		nil, {"revision=canary,revisionTags={prod,default}"}, {"global.externalIstiod=true"},
		{"env.PILOT_ENABLE_IP_AUTOALLOCATE=false,global.configValidation=false"},
	}
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "profile-"), ".yaml")
		switch {
		case strings.HasPrefix(name, "platform-"):
			sets = append(sets, []string{"global.platform=" + strings.TrimPrefix(name, "platform-")})
		case strings.HasPrefix(name, "compatibility-version-"):
			sets = append(sets, []string{"compatibilityVersion=" + strings.TrimPrefix(name, "compatibility-version-")})
		default:
			sets = append(sets, []string{"profile=" + name})
		}
	}
	for _, set := range sets {
		t.Run(strings.Join(set, ","), func(t *testing.T) {
			args := []string{"template", "istiod", chart, "--namespace", namespace, "--kube-version", version}
			for _, s := range set {
				args = append(args, "--set", s)
			}
			text, err := helm(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text, "kind: Deployment") { // an istiod elsewhere serves this cluster
				out, err := migrated(t, text)
				if err == nil || !strings.Contains(out, "no Deployment runs istiod") {
					t.Errorf("%v: %s", err, out)
				}
				return
			}
			migrates(t, text)
		})
	}
}

// TestMigratesInstalled: of what `istioctl` installs by each of its profiles, and of istiod with a
// gateway of the chart `gateway` beside it, in its namespace, everything has an outcome, and of
// other components' objects none is said to be replaced.
func TestMigratesInstalled(t *testing.T) {
	need.All(t)
	t.Parallel()
	charts, istioctl := istios(t), filepath.Join(program.Built(t, "test/peer", "peer", "istioctl"), "istioctl")
	manifests := filepath.Dir(charts)
	profiles, err := filepath.Glob(filepath.Join(manifests, "profiles", "*.yaml"))
	if err != nil || len(profiles) < 8 {
		t.Fatal(profiles, err)
	}
	for _, p := range profiles {
		name := strings.TrimSuffix(filepath.Base(p), ".yaml")
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(istioctl, "manifest", "generate", "--manifests", manifests, "--set", "profile="+name)
			var said bytes.Buffer
			cmd.Stderr = &said
			text, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			if !strings.Contains(string(text), "kind: Deployment") { // nothing, or an istiod elsewhere
				return
			}
			others(t, string(text), migrates(t, string(text)))
		})
	}
	t.Run("gateway", func(t *testing.T) {
		text := ""
		for name, chart := range map[string]string{"istiod": "istio-control/istio-discovery", "istio-ingressgateway": "gateway"} {
			rendered, err := helm(t, "template", name, filepath.Join(charts, chart), "--namespace", namespace, "--kube-version", version)
			if err != nil {
				t.Fatal(err)
			}
			text += "\n---\n" + rendered
		}
		report := migrates(t, text)
		others(t, text, report)
		if !strings.Contains(report, "Deployment/istio-ingressgateway: its pods ask for injection") {
			t.Errorf("it is not said that the gateway has to move: %s", report)
		}
	})
}

// others sees that of no object of another component than istiod a report says that something takes
// its place, and that of each of istiod's own kinds it does.
func others(t *testing.T, text, report string) {
	t.Helper()
	istiods := regexp.MustCompile(`^[A-Za-z]+/(istiod|istiod-(clusterrole|gateway-controller)-istio-system)$`)
	replaced := 0
	for id := range split(t, text) {
		for line := range strings.Lines(report) {
			if !strings.HasPrefix(line, "  "+id+":") && !strings.HasPrefix(line, "  "+id+" of ") ||
				!strings.Contains(line, "rights.yaml") && !strings.Contains(line, "the chart makes") {
				continue
			}
			if replaced++; !istiods.MatchString(id) {
				t.Errorf("of another component it says %s", line)
			}
		}
	}
	if replaced < 7 { // an account, and two roles of the cluster and one of the namespace with their bindings
		t.Errorf("%d objects of istiod's are replaced: %s", replaced, report)
	}
}

// TestMigratesLive: of an istiod that was installed in a cluster, and to which somebody has added a
// variable there, `coxswain migrate --live` writes the files that it writes of the chart's text.
func TestMigratesLive(t *testing.T) {
	need.All(t)
	t.Parallel()
	charts, c := istios(t), kube.Start(t)
	on := func(args ...string) string {
		t.Helper()
		text, err := helm(t, append([]string{"--kubeconfig", c.Kubeconfig, "--namespace", namespace}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	c.Kubectl(t, "create", "namespace", namespace)
	on("install", "base", filepath.Join(charts, "base"))
	on("install", "istiod", filepath.Join(charts, "istio-control/istio-discovery"), "--set", "revision=canary,revisionTags={prod}")
	text := on("get", "manifest", "istiod")
	of, live := filepath.Join(t.TempDir(), "of"), filepath.Join(t.TempDir(), "live")
	if out, err := migrated(t, text, "--to", of); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ask := func(args ...string) string {
		t.Helper()
		asked := append([]string{"migrate", "--live", "--kubeconfig", c.Kubeconfig, "--namespace", namespace}, args...)
		out, err := exec.Command(binary, asked...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	ask("--to", live)
	for _, name := range []string{"settings.yaml", "plugins.yaml", "rights.yaml", "webhooks.yaml"} {
		want, err := os.ReadFile(filepath.Join(of, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(live, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v: of the cluster it is\n%s\nof the chart's text\n%s", name, err, got, want)
		}
	}
	c.Kubectl(t, "set", "env", "deployment/istiod-canary", "-n", namespace, "PILOT_PUSH_THROTTLE=7", "FOREIGN_PASSWORD=hunter22")
	c.Apply(t, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: gateway, namespace: istio-system}
spec:
  selector: {matchLabels: {app: gateway}}
  template:
    metadata: {labels: {app: gateway, sidecar.istio.io/inject: "true"}}
    spec: {containers: [{name: istio-proxy, image: auto}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: istio-system}
spec:
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec: {containers: [{name: store, image: store}]}
`)
	report := ask()
	for _, want := range []string{"DaemonSet/gateway: its pods ask for injection", "StatefulSet/store: it is not this istiod's"} {
		if !strings.Contains(report, want) {
			t.Errorf("%q is not in %s", want, report)
		}
	}
	c.Kubectl(t, "label", "namespace", namespace, "istio-injection=enabled")
	if report := ask(); !strings.Contains(report, "StatefulSet/store: its pods ask for injection (labels of the namespace)") {
		t.Errorf("of a namespace that is injected into it says %s", report)
	}
	if !strings.Contains(report, "variable PILOT_PUSH_THROTTLE:") || !strings.Contains(report, "variable FOREIGN_PASSWORD:") ||
		strings.Contains(report, "hunter22") {
		t.Errorf("of what was set in the cluster it says %s", report)
	}
}

func migrated(t *testing.T, text string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"migrate", "-f", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// migrates sees what is said of a rendering, and that what is written can be used; it returns what
// is said.
func migrates(t *testing.T, text string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "to")
	report, err := migrated(t, text, "--to", dir)
	if err != nil {
		t.Fatalf("%v: %s", err, report)
	}
	if out, err := exec.Command(binary, "validate", filepath.Join(dir, "plugins.yaml")).CombinedOutput(); err != nil {
		t.Errorf("plugins.yaml: %v: %s", err, out)
	}
	all := split(t, text)
	for id, raw := range all {
		if kind, _, _ := strings.Cut(id, "/"); kind != "Deployment" {
			if !strings.Contains(report, id) {
				t.Errorf("nothing is said of %s", id)
			}
			continue
		}
		var d appsv1.Deployment
		if err := yaml.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		if d.Labels["app"] != "istiod" { // a gateway
			if !strings.Contains(report, id) {
				t.Errorf("nothing is said of %s", id)
			}
			continue
		}
		c := d.Spec.Template.Spec.Containers[0]
		for _, v := range c.Env {
			if !strings.Contains(report, "variable "+v.Name+":") {
				t.Errorf("nothing is said of %s", v.Name)
			}
		}
		for _, m := range c.VolumeMounts {
			if !strings.Contains(report, "mount "+m.MountPath+":") {
				t.Errorf("nothing is said of %s", m.MountPath)
			}
		}
		for _, a := range c.Args {
			name, _, _ := strings.Cut(a, "=")
			if strings.HasPrefix(a, "--") && !strings.Contains(report, name+":") {
				t.Errorf("nothing is said of %s", a)
			}
		}
	}
	// The chart sets it for older versions, and istiod of this one does not know it either.
	report = strings.ReplaceAll(report, "variable PILOT_SPAWN_UPSTREAM_SPAN_FOR_GATEWAY: it is none of the variables of istiod's that are known", "")
	if strings.Contains(report, "none of the variables of istiod's that are known") || strings.Contains(report, " template ") ||
		strings.Contains(report, "it is no flag that is known") || strings.Contains(report, "it selects otherwise") {
		t.Errorf("what the chart makes is not known: %s", report)
	}
	for _, name := range []string{"settings.yaml", "rights.yaml", "webhooks.yaml"} {
		is, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(bytes.TrimSpace(is)) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again, err := migrated(t, text, "--to", dir); err == nil || !strings.Contains(again, "nothing was written") {
		t.Errorf("files are overwritten: %v %s", err, again)
	}
	if !slices.ContainsFunc(strings.Split(report, "\n"), func(l string) bool { return strings.HasPrefix(l, "  kubectl delete mutatingwebhook") }) {
		t.Errorf("it is not said what has to go: %s", report)
	}
	return report
}
