package kube_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/leaks"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
	"google.golang.org/grpc/codes"
)

// credentialsGateway is a Gateway of the account gw with a port of HTTPS for each credential.
func credentialsGateway(ports map[string]int) string {
	var servers []string
	for name, port := range ports {
		mode := "SIMPLE"
		if name == "generic" || name == "mutual" {
			mode = "OPTIONAL_MUTUAL"
		}
		servers = append(servers, fmt.Sprintf(
			"{port: {number: %d, name: %s, protocol: HTTPS}, bind: 127.0.0.1, hosts: ['*'], tls: {mode: %s, credentialName: %[2]s}}",
			port, name, mode,
		))
	}
	return fmt.Sprintf(`
{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: credentials, namespace: edge}, spec: {selector: {app: gw}, servers: [%s]}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: credentials, namespace: edge}
spec: {hosts: ['*'], gateways: [credentials], http: [{directResponse: {status: 200, body: {string: fine}}}]}`, strings.Join(servers, ", "))
}

// opaque is a Secret with values.
func opaque(name string, values map[string][]byte) string {
	var data []string
	for key, value := range values {
		data = append(data, fmt.Sprintf("%s: %s", key, base64.StdEncoding.EncodeToString(value)))
	}
	return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: edge}, type: Opaque, data: {%s}}", name, strings.Join(data, ", "))
}

// markKey adds the marks of a key in PEM, the key's bytes as a program that has read it has them
// included.
func markKey(m leaks.Marks, name string, text []byte) {
	m.Of(name, text)
	block, _ := pem.Decode(text)
	m[name+", its bytes"] = block.Bytes[len(block.Bytes)/3 : len(block.Bytes)/3+32]
}

// markToken adds those of a token: a part of its signature, and that in base64 wherever it begins.
func markToken(m leaks.Marks, name, token string) {
	part := token[len(token)-90 : len(token)-20]
	m[name] = []byte(part)
	for skip := range 3 {
		m[fmt.Sprintf("%s in base64 (%d)", name, skip)] = []byte(base64.StdEncoding.EncodeToString([]byte(part[skip:]))[4:84])
	}
}

// TestSecretsOfAClusterStaySecret: Secrets of all sorts, kubeconfigs of other clusters, the CA's
// key and callers' tokens are in no log, page, metric, recording, Event, status or other object,
// environment or command line, and in the memory of no plugin but those whose business they are.
func TestSecretsOfAClusterStaySecret(t *testing.T) {
	need.All(t)
	t.Parallel()
	c, other := kube.Start(t), kube.Start(t)
	c.Apply(t, documents(kube.Definitions(t), kube.GatewayAPI(t)))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	ports := map[string]int{"web": wait.Port(t), "generic": wait.Port(t), "mutual": wait.Port(t), "mismatch": wait.Port(t), "text": wait.Port(t)}
	c.Apply(t, documents(edge, system, namespace, accountsOfShop, credentialsGateway(ports)))
	c.Kubectl(t, "apply", "-k", deployed)
	other.Apply(t, documents(namespace, accountsOfShop))
	other.Kubectl(t, "create", "clusterrolebinding", "east", "--clusterrole", "cluster-admin", "--serviceaccount", "shop:cart")
	east, own := tokenOf(t, other, "cart"), strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))
	c.Apply(t, secret("east", "east", other.Remote(t, east)))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, c.Remote(t, own))
	s := newSecured(t, "", "--registries", "Kubernetes", "--kubeconfig", kubeconfig, "--authPlaintext")

	web, generic, mutual, mismatch, broken, unused := s.served(t, "web"), s.served(t, "generic"),
		s.served(t, "mutual"), s.served(t, "mismatch"), s.served(t, "broken"), s.served(t, "unused")
	const text = "marked-3c8a-neither-base64-nor-PEM-which-is-long-enough-to-be-found-wherever-it-may-stand-in-a-text-of-any-sort"
	const beside = "marked-51d7-a-value-beside-the-certificate-that-is-nobody's-business-and-long-enough-to-be-found-wherever-it-stands"
	annotated := func(of string) string { // as kubectl apply leaves it
		return strings.Replace(of, "metadata: {", fmt.Sprintf("metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: %q}, ", of), 1)
	}
	c.Apply(t, documents(
		annotated(web.secret("web")),
		opaque("generic", map[string][]byte{"cert": generic.chain, "key": generic.key, "cacert": generic.roots, "other": []byte(beside)}),
		mutual.secret("mutual"), opaque("mutual-cacert", map[string][]byte{"ca.crt": mutual.roots, "password": []byte(beside)}),
		served{mismatch.chain, broken.key, nil}.secret("mismatch"),
		opaque("text", map[string][]byte{"tls.crt": []byte(text), "tls.key": []byte(text)}), unused.secret("unused"),
	))
	e := s.gateway(t, "gw")
	for name, is := range map[string]served{"web": web, "generic": generic, "mutual": mutual} {
		is.shown(t, ports[name])
	}
	s.faulty(t, "edge/gw", "is not the key")
	good, bad := tokenOf(t, c, "web", ofIstio), tokenOf(t, c, "web", "--audience=vault")
	if err := login(t, s.plane, good, ""); err != nil {
		t.Error(err)
	}
	if err := ends(login(t, s.plane, bad, ""), codes.Unauthenticated, "its audience is none of istio-ca"); err != nil {
		t.Error(err)
	}
	wait.For(t, "the other cluster is known", func() error { return login(t, s.plane, tokenOf(t, other, "web", ofIstio), "east") })

	wait.For(t, "who judges certificates of Gateways has been woken by the class that is made", func() error {
		if p := s.plane.Plugins(t)["gatewayapi"]; p.State != "serving" || p.Revision == 0 {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})

	// What is where is by name: the first word of a mark.
	m := leaks.Marks{}
	markKey(m, "served: the key of web", web.key)
	markKey(m, "served: the key of generic", generic.key)
	markKey(m, "served: the key of mutual", mutual.key)
	markKey(m, "broken: the key of mismatch", broken.key)
	markKey(m, "unused: a key that nobody asks for", unused.key)
	m.Of("broken: text", []byte(text))
	m.Of("beside: a value", []byte(beside))
	markKey(m, "ca: the CA's key", secretOf(t, c, "ca-key.pem"))
	markToken(m, "remote: the token of the other cluster", east)
	markToken(m, "own: the token of this cluster", own)
	markToken(m, "callers: an accepted token", good)
	markToken(m, "callers: a refused token", bad)
	// Whose business they are: its memory has them.
	business := map[string][]string{
		"secrets": {"served", "broken", "beside", "own"}, "sds": {"served", "broken"}, "ca": {"ca", "own"}, "accounts": {"callers", "remote", "own"},
		"gatewayapi": {"served", "broken"}, "clusters": {"remote", "own"}, "remote@east": {"remote", "own"}, "remote-secrets@east": {"remote", "own"},
		"crds": {"own"}, "mesh": {"own"}, "kubernetes": {"own"},
	}
	clean := func(where string, text []byte) {
		t.Helper()
		if len(text) == 0 {
			t.Errorf("%s says nothing", where)
		}
		for _, what := range m.In(text) {
			t.Errorf("%s has %s", where, what)
		}
	}
	clean("the core's environment", leaks.Shown(t, s.plane.PID()))
	for name, p := range s.plane.Plugins(t) {
		if p.PID == 0 {
			continue
		}
		clean("the environment of "+name, leaks.Shown(t, p.PID))
		found, err := leaks.Memory(p.PID, m)
		switch {
		case errors.Is(err, os.ErrPermission):
			t.Logf("the memory of %s can't be looked at: %v", name, err)
			continue
		case err != nil:
			t.Errorf("%s: %v", name, err)
		}
		seen := map[string]bool{}
		for _, what := range found {
			sort, _, _ := strings.Cut(what, ":")
			if seen[sort] = true; !slices.Contains(business[name], sort) {
				t.Errorf("the memory of %s has %s", name, what)
			}
		}
		for _, sort := range business[name] {
			if !seen[sort] && sort != "beside" { // the API server gives whole objects, of which the rest is let go
				t.Errorf("the memory of %s has nothing of what it needs (%s): this test can't see it", name, sort)
			}
		}
	}
	for path, text := range leaks.Pages(t, s.plane.HTTP, "/debug/rowz?table=v1/Secret",
		"/debug/rowz?table=v1/ConfigMap", "/debug/rowz?table=secretrequests", "/debug/rowz?table=clusters",
		"/debug/rowz?table=networking.istio.io/Gateway", "/debug/config_dump?proxyID=router~127.0.0.21~gw.edge~edge.svc.cluster.local") {
		clean(path, text)
	}
	for _, name := range []string{"secrets", "sds", "clusters", "remote@east", "accounts", "ca", "crds"} {
		clean("the recording of "+name, leaks.Recording(t, program, s.plane.HTTP, name, ""))
	}
	for _, command := range []string{"config", "views", "plugins", "proxy-status"} {
		out, _ := exec.Command(program, command, "--addr", s.plane.HTTP).CombinedOutput()
		clean("coxswain "+command, out)
	}
	clean("the log", []byte(s.plane.Log()))
	kinds := strings.Fields(c.Kubectl(t, "api-resources", "--verbs", "list", "-o", "name"))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == "secrets" })
	_, objects, _ := strings.Cut(c.Kubectl(t, "get", strings.Join(kinds, ","), "-A", "-o", "json"), "{") // after warnings of kinds that are to go
	objects = "{" + objects
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(objects), &list); err != nil || len(list.Items) < 20 || !strings.Contains(objects, "istio-ca-root-cert") {
		t.Errorf("%d objects: %v", len(list.Items), err)
	}
	clean("what the API server has beside Secrets", []byte(objects))
	for _, line := range e.Unhappy(t) {
		clean("Envoy", []byte(line))
	}
}
