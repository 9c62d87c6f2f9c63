package main

import (
	"strings"
	"testing"
)

const deployed = `apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system}
spec:
  template:
    spec:
      containers:
      - name: discovery
        image: registry.example/mesh/coxswain:v0.1.0@sha256:00
        args: [discovery, --registries=Kubernetes, --settings=/etc/coxswain/settings.yaml, --plugins=/etc/coxswain/plugins.yaml, --pushThrotle=$(PUSHES), --stateDir=/var/lib/coxswain]
        env:
        - {name: PUSHES, value: "3"}
        - {name: COXSWAIN_NOTHING, value: x}
        - {name: PILOT_TOKEN, valueFrom: {secretKeyRef: {name: vault, key: token}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        envFrom:
        - {configMapRef: {name: more}}
        - {configMapRef: {name: absent}}
        volumeMounts:
        - {name: own, mountPath: /etc/coxswain}
        - {name: tls, mountPath: /etc/tls}
        - {name: state, mountPath: /var/lib/coxswain}
      volumes:
      - {name: own, configMap: {name: istiod-own}}
      - {name: tls, secret: {secretName: certificates}}
      - {name: state, persistentVolumeClaim: {claimName: state}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istiod-own, namespace: istio-system}
data:
  settings.yaml: |
    holdMx: 3s
  plugins.yaml: |
    plugins:
    - {name: crds, kind: config, builtin: config/kubernetez}
    - {name: own, kind: registry, process: {command: /etc/tls/registry}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: more, namespace: istio-system}
data: {COXSWAIN_NOTHING_ELSE: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: more, namespace: other}
data: {COXSWAIN_OF_ANOTHER: x}
`

// TestUpgradeOfADeployment: arguments, environment and mounted ConfigMaps of a Deployment are
// checked as those of a process; what isn't known is said, and files of this machine are left
// alone.
func TestUpgradeOfADeployment(t *testing.T) {
	inFolder(t, map[string]string{"deployed.yaml": deployed, "other.yaml": strings.ReplaceAll(deployed, "name: istiod,", "name: another,")})
	r, code, complaint := upgraded(t, nil, "-f", "deployed.yaml")
	if code != 1 || !strings.Contains(complaint, "would refuse") {
		t.Errorf("it ends with %d: %s", code, complaint)
	}
	for _, want := range []outcome{
		{isRefused, "command line", `unknown flag --pushThrotle, did you mean "pushThrottle"?`},
		{isRefused, "settings", `/etc/coxswain/settings.yaml:1:1: unknown setting "holdMx", did you mean "holdMax"?`},
		{isPassed, "environment", "COXSWAIN_NOTHING is no setting"},
		{isPassed, "environment", "COXSWAIN_NOTHING_ELSE is no setting"},
		{isRefused, "plugins.yaml", "config/kubernetez"},
		{isUnread, "Deployment", "PILOT_TOKEN: its value is in the Secret vault"},
		{isUnread, "Deployment", "POD_NAME: its value is the pod's metadata.name"},
		{isUnread, "Deployment", "ConfigMap absent is not among what was read"},
		{isUnread, "Deployment", "/etc/tls: files of Secret certificates"},
		{isUnread, "Deployment", "/var/lib/coxswain: files of volume state"},
	} {
		if !r.says(want.Means, want.Of, want.Text) {
			t.Errorf("it does not say %q, but %+v", want, r.Findings)
		}
	}
	for _, f := range r.Findings {
		if strings.Contains(f.Text, "/tmp/") || strings.Contains(f.Text, "OF_ANOTHER") || f.Means == isRefused && strings.Contains(f.Text, "/etc/tls") {
			t.Errorf("it says %+v", f)
		}
	}
	if r.Since != "v0.1.0" || len(r.Changes) == 0 {
		t.Errorf("since %q there are %d changes", r.Since, len(r.Changes))
	}
	if r, code, complaint = upgraded(t, nil, "-f", ".", "--deployment", "another"); code != 1 || !r.says(isRefused, "command line", "pushThrotle") {
		t.Errorf("%d, %s: %+v", code, complaint, r.Findings)
	}
	for _, c := range [][]string{{"-f", "."}, {"-f", "deployed.yaml", "--deployment", "none"}, {"-f", "deployed.yaml", "--live"}, {"-f", "deployed.yaml", "--pid", "1"},
		{"-f", "deployed.yaml", "--", "--configDir=."}} {
		if _, code, complaint = upgraded(t, nil, c...); code == 0 || complaint == "" {
			t.Errorf("%q: %d, %s", c, code, complaint)
		}
	}
}

// TestUpgradeOfConfigMaps: what the control plane reads of ConfigMaps once it runs is judged, too.
func TestUpgradeOfConfigMaps(t *testing.T) {
	const maps = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "bogus: 1\nenableAutoMtls: maybe\n", meshNetworks: "networks: {}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: other}
data: {mesh: "of another: 1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio-sidecar-injector, namespace: istio-system}
data: {config: "policy: enabled\ntemplates: {x: 'bad {{'}\n", values: "{}"}
`
	const plane = `apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system}
spec:
  template:
    spec:
      containers:
      - name: discovery
        image: registry.example/mesh/coxswain:v0.1.0
        args: [discovery, --registries=Kubernetes, --httpsAddr=:15017]
`
	inFolder(t, map[string]string{"all.yaml": plane + maps, "alone.yaml": plane})
	r, code, _ := upgraded(t, nil, "-f", "all.yaml")
	if code != 1 || !r.says(isRefused, "MeshConfig", "ConfigMap istio, mesh:2:17: enableAutoMtls") ||
		!r.says(isPassed, "MeshConfig", "bogus") || !r.says(isFine, "MeshNetworks", "ConfigMap istio, meshNetworks is taken") ||
		!r.says(isRefused, "injector", "ConfigMap istio-sidecar-injector: config: templates: x: ") {
		t.Errorf("%d: %+v", code, r.Findings)
	}
	for _, f := range r.Findings {
		if strings.Contains(f.Text, "of another") {
			t.Errorf("it says %+v", f)
		}
	}
	r, code, _ = upgraded(t, nil, "-f", "alone.yaml")
	if code != 0 || !r.says(isUnread, "MeshConfig", "ConfigMap istio of namespace istio-system is not among") {
		t.Errorf("%d: %+v", code, r.Findings)
	}
}
