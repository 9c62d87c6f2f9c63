package kube_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	api "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// meshRights are all that config/mesh needs.
const meshRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: coxswain-mesh, namespace: istio-system}
rules:
  - {apiGroups: [""], resources: [configmaps], resourceNames: [istio, istio-shared], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: coxswain-mesh, namespace: istio-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: coxswain-mesh}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mesh}]`

// settings is a ConfigMap with a MeshConfig, and a MeshNetworks where it is not empty.
func settings(name, config, networks string) string {
	data := map[string]string{"mesh": config, "values": "{}"}
	if networks != "" {
		data["meshNetworks"] = networks
	}
	text, _ := json.Marshal(data)
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: istio-system}, data: %s}", name, text)
}

// asMesh is a kubeconfig of a user without any rights but those that he is given.
func asMesh(t *testing.T, c *kube.Cluster) string {
	t.Helper()
	text, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, path, strings.Replace(string(text), "token: administrator}", "token: administrator, as: mesh}", 1))
	return path
}

// row reads the row of a table with one row into a message.
func row(p *mesh.Plane, table string, into proto.Message) (source string, err error) {
	page, err := p.Get("/debug/rowz?table=" + table)
	if err != nil {
		return "", err
	}
	var rows []struct {
		Source  string
		Payload []byte
	}
	if err := json.Unmarshal([]byte(page), &rows); err != nil {
		return "", err
	}
	if len(rows) != 1 {
		return "", fmt.Errorf("%d rows of %s", len(rows), table)
	}
	return rows[0].Source, proto.Unmarshal(rows[0].Payload, into)
}

// TestMeshOfACluster: the mesh's settings of ConfigMaps, with no right to anything else: an API
// server that is away at the start, changed, mistaken, deleted, unreachable, shared and own,
// networks.
func TestMeshOfACluster(t *testing.T) {
	c := kube.Start(t)
	c.Apply(t, documents(`{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}`, meshRights))
	c.Apply(t, settings("istio", "{accessLogFile: /dev/first, outboundTrafficPolicy: {mode: REGISTRY_ONLY}, defaultConfig: {statusPort: 1}}", ""))
	c.Down()

	file := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, file, fmt.Sprintf(`plugins:
  - {name: mesh, kind: config, builtin: config/mesh, config: {configMap: istio, sharedConfigMap: istio-shared, kubeconfig: %q}}
  - {name: istio, kind: generator, builtin: generator/istio}
`, asMesh(t, c)))
	w := &world{cluster: c, plane: mesh.Start(t, program, "", "--plugins", file)}
	wait.For(t, "the log says that the API server is away", func() error {
		if !strings.Contains(w.plane.Log(), "the mesh's settings are awaited") {
			return fmt.Errorf("it says:\n%s", w.plane.LastLines(10))
		}
		return nil
	})
	if text, err := w.plane.Get("/debug/rowz?table=mesh"); err == nil && strings.Contains(text, "payload") {
		t.Errorf("there are settings before the API server was asked: %s", text)
	}
	c.Up(t)
	w.plane.Ready(t)

	// The first revision has them already.
	bootstrap := w.plane.Bootstrap(t, "--type", "sidecar", "--name", "web", "--namespace", "shop", "--ip", "10.244.0.1")
	var listeners bytes.Buffer
	for _, l := range w.plane.Fetch(t, bootstrap, "type.googleapis.com/envoy.config.listener.v3.Listener") {
		listeners.Write(l.Value)
	}
	if !strings.Contains(listeners.String(), "/dev/first") {
		t.Errorf("the first listeners don't know the mesh's settings: %q", listeners.String())
	}
	is := func(want string) {
		t.Helper()
		wait.For(t, "the settings are "+want, func() error {
			var m api.MeshConfig
			var n api.MeshNetworks
			source, err := row(w.plane, "mesh", &m)
			if err != nil {
				return err
			}
			if _, err := row(w.plane, "networks", &n); err != nil {
				return err
			}
			got := fmt.Sprintln(m.TrustDomain, m.OutboundTrafficPolicy.Mode, m.DefaultConfig.StatusPort,
				m.DefaultConfig.ProxyAdminPort, len(n.Networks), source)
			if got = strings.TrimSpace(got); got != want {
				return fmt.Errorf("they are %s", got)
			}
			return nil
		})
	}
	const own, shared = "k8s://configmaps/istio-system/istio#mesh", "k8s://configmaps/istio-system/istio-shared#mesh"
	is("cluster.local REGISTRY_ONLY 1 15000 0 " + own + ":1:1")
	c.Apply(t, settings("istio", "{trustDomain: own, defaultConfig: {statusPort: 2}}", "networks: {a: {endpoints: [{fromRegistry: one}]}}"))
	is("own ALLOW_ANY 2 15000 1 " + own + ":1:1")

	// One that comes later is taken, and the other wins field by field.
	c.Apply(t, settings("istio-shared", "{trustDomain: shared, defaultConfig: {statusPort: 3, proxyAdminPort: 3}}", ""))
	is("own ALLOW_ANY 2 3 1 " + shared + ":1:1, " + own + ":1:1")

	// The last good version stays, and the reason is shown until it is mended.
	c.Apply(t, settings("istio", "trustDomain: other\ndefaultConfig: {statusPrt: 2}", "networks: {}"))
	w.says(t, own+":2:17", "statusPrt")
	is("own ALLOW_ANY 2 3 0 " + shared + ":1:1, " + own + ":1:1")
	c.Apply(t, settings("istio", "trustDomain: other", "networks: {}"))
	is("other ALLOW_ANY 3 3 0 " + shared + ":1:1, " + own + ":1:1")

	// One that is deleted counts on, and so it does while the API server is away.
	c.Kubectl(t, "delete", "configmap", "istio", "-n", "istio-system")
	w.says(t, own, "is gone")
	is("other ALLOW_ANY 3 3 0 " + shared + ":1:1, " + own + ":1:1")
	c.Down()
	is("other ALLOW_ANY 3 3 0 " + shared + ":1:1, " + own + ":1:1")
	c.Up(t)
	c.Apply(t, settings("istio", "{}", ""))
	is("shared ALLOW_ANY 3 3 0 " + shared + ":1:1, " + own + ":1:1")
	wait.For(t, "nothing is wrong any more", func() error {
		if !strings.Contains(w.plane.Log(), "nothing is wrong with the mesh's settings any more") {
			return fmt.Errorf("the log says:\n%s", w.plane.LastLines(10))
		}
		return nil
	})
}
