package kube_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kube"
)

// upgrading is who may read what an upgrade check reads, and nothing else: no Secret.
const upgrading = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: upgrading, namespace: istio-system}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: upgrading, namespace: istio-system}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [list]}
- {apiGroups: [""], resources: [configmaps], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: upgrading, namespace: istio-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: upgrading}
subjects: [{kind: ServiceAccount, name: upgrading, namespace: istio-system}]`

// running is a control plane whose settings and plugins are in a ConfigMap; its environment is
// partly a Secret's.
const running = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system}
spec:
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod}}
    spec:
      containers:
      - name: discovery
        image: registry.example.com/coxswain:v0.1.0
        args: [discovery, --settings=/etc/coxswain/settings.yaml, --plugins=/etc/coxswain/plugins.yaml]
        env: [{name: COXSWAIN_PUSH_THROTTLE, valueFrom: {secretKeyRef: {name: own, key: throttle}}}]
        volumeMounts: [{name: own, mountPath: /etc/coxswain}]
      volumes: [{name: own, configMap: {name: own}}]
---
apiVersion: v1
kind: Secret
metadata: {name: own, namespace: istio-system}
stringData: {throttle: a-word-that-nobody-may-see}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: own, namespace: istio-system}
data:
  settings.yaml: "SETTING: 3s"
  plugins.yaml: |
    plugins:
    - {name: crds, kind: config, builtin: config/kubernetes}
    - {name: istio, kind: generator, builtin: generator/istio}`

// TestUpgradeCheckLive: an upgrade check of what runs in a cluster reads Deployments and
// ConfigMaps, needs no more rights than that, and finds what the new version would refuse; the
// Deployments of deploy/kubernetes are taken.
func TestUpgradeCheckLive(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, documents(system, upgrading))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "upgrading", "-n", "istio-system"))))
	check := func(want int, words []string, args ...string) {
		t.Helper()
		var said, complaint bytes.Buffer
		cmd := exec.Command(program, append([]string{"upgrade", "check", "--live", "--kubeconfig", kubeconfig}, args...)...)
		cmd.Stdout, cmd.Stderr = &said, &complaint
		err := cmd.Run()
		code := 0
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			code = failed.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		out := said.String() + complaint.String()
		if code != want || strings.Contains(out, "a-word-that") {
			t.Errorf("%q ends with %d: %s", args, code, out)
		}
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("%q doesn't say %q: %s", args, word, out)
			}
		}
		if len(args) > 1 && args[len(args)-1] == "json" && !json.Valid(said.Bytes()) {
			t.Errorf("%q is no JSON", said.String())
		}
	}
	check(1, []string{"there are 0"})
	c.Kubectl(t, "apply", "-k", deployed)
	check(0, []string{"they are taken", "plugins.yaml for Kubernetes"})
	c.Apply(t, strings.Replace(running, "SETTING", "holdMx", 1))
	check(1, []string{"there are 2", "--deployment says which"})
	check(1, []string{"settings.yaml:1:1", `unknown setting \"holdMx\"`}, "--deployment", "istiod", "-o", "json")
	c.Apply(t, strings.Replace(running, "SETTING", "holdMax", 1))
	check(0, []string{"they are taken", "2 plugins", "its value is in the Secret own", "Since v0.1.0"}, "--namespace", "istio-system", "--deployment", "istiod")
	// What can't be read is said, and not taken for nothing.
	c.Kubectl(t, "delete", "rolebinding", "upgrading", "-n", "istio-system")
	check(1, []string{"forbidden"})
	c.Down()
	check(1, []string{c.Address()}, "--timeout", "3s")
}
