package modules

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/coxswain-mesh/coxswain/test/artifacts"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// repository is one of a private registry, to which its tests push.
type repository struct{ *remote.Repository }

func newRepository(t *testing.T, at, user, password string) *repository {
	t.Helper()
	r, err := remote.NewRepository(at + "/team/header")
	if err != nil {
		t.Fatal(err)
	}
	r.PlainHTTP = true
	r.Client = &auth.Client{
		Client:     &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Credential: auth.StaticCredential(at, auth.Credential{Username: user, Password: password}),
	}
	return &repository{r}
}

// push pushes an image of one layer under a tag.
func (r *repository) push(t *testing.T, tag, configType, layerType string, layer []byte) {
	t.Helper()
	bring := func(mediaType string, text []byte) ocispec.Descriptor {
		d, err := oras.PushBytes(t.Context(), r, mediaType, text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	text, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: bring(configType, []byte("{}")), Layers: []ocispec.Descriptor{bring(layerType, layer)},
	})
	if err == nil {
		_, err = oras.TagBytes(t.Context(), r, ocispec.MediaTypeImageManifest, text, tag)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// packed is a layer with the file plugin.wasm, as images of containers have it.
func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: "plugin.wasm", Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// clustered is a world whose control plane runs the set for a cluster, with the rights of
// deploy/kubernetes and no others.
type clustered struct {
	*world
	cluster *kube.Cluster
}

// startInCluster begins one, which believes servers that the roots have signed for.
func startInCluster(t *testing.T, roots string) *clustered {
	t.Helper()
	envoy.Binary(t)
	mesh.RuntimeDir(t)
	w := &clustered{&world{dir: t.TempDir(), gateway: wait.Port(t)}, kube.Start(t)}
	c := w.cluster
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	for _, name := range []string{"istio-system", "shop", "other"} {
		c.Kubectl(t, "create", "namespace", name)
	}
	c.Kubectl(t, "apply", "-k", "../../deploy/kubernetes")
	c.Apply(t, fmt.Sprintf(gateway, w.gateway))
	put(t, w.dir+"/kubeconfig", c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n",
		"istio-system"))))
	w.Plane = mesh.StartWith(t, func(cmd *exec.Cmd) { cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+roots) }, binary, "",
		"--registries", "Kubernetes", "--kubeconfig", w.dir+"/kubeconfig", "--modulesDir", w.dir+"/kept")
	w.Ready(t)
	w.edge(t)
	w.answers(t, "200")
	return w
}

// plugin writes a WasmPlugin into the cluster, whose image a Secret opens.
func (w *clustered) plugin(t *testing.T, namespace, name, url, secret string) {
	t.Helper()
	more := ""
	if secret != "" {
		more = ", imagePullSecret: " + secret
	}
	w.cluster.Apply(t, fmt.Sprintf(`{apiVersion: extensions.istio.io/v1alpha1, kind: WasmPlugin, metadata: {name: %s, namespace: %s},
spec: {selector: {matchLabels: {app: edge}}, url: %q%s}}`, name, namespace, url, more))
}

// TestCluster: with the set for a cluster and --modulesDir, a gateway without an agent runs modules
// of a private registry, whose password the cluster's Secret has: one of an artifact and one of a
// container's image; and one of a server whose authority SSL_CERT_FILE names. They outlive the
// registry, the plugin and the control plane, and the account needs no right beyond those of the
// set.
func TestCluster(t *testing.T) {
	need.All(t)
	const user, password = "me", "a-word-that-nobody-may-see"
	at, server := artifacts.StartPrivate(t, user, password)
	r, f := newRepository(t, at, user, password), newFiles(t)
	r.push(t, "1", "application/vnd.module.wasm.config.v1+json",
		"application/vnd.module.wasm.content.layer.v1+wasm", module(t, "one!", 800<<10))
	r.push(t, "2", ocispec.MediaTypeImageConfig, ocispec.MediaTypeImageLayerGzip, packed(t, module(t, "two!", 0)))
	w := startInCluster(t, f.ca)
	image := "oci://" + at + "/team/header:"
	w.plugin(t, "shop", "header", image+"1", "registry")
	w.answers(t, "503")
	w.says(t, "WasmPlugin/shop/header", "imagePullSecret registry")
	secret := func(namespace, as string) {
		t.Helper()
		w.cluster.Apply(t, w.cluster.Kubectl(t, "create", "secret", "docker-registry", "registry", "-n", namespace,
			"--docker-server", at,
			"--docker-username", user, "--docker-password", as, "--dry-run=client", "-o", "yaml"))
	}
	secret("shop", "not-the-word")
	w.says(t, "WasmPlugin/shop/header", "401")
	secret("shop", password)
	w.answers(t, "200 one!")

	traffic := mesh.NewTraffic(t, mesh.Target{Address: fmt.Sprintf("127.0.0.1:%d", w.gateway), Host: "x", Path: "/"})
	w.plugin(t, "shop", "header", image+"2", "registry")
	w.answers(t, "200 two!")
	if asked, failed := traffic.Stop(); len(failed) > 0 {
		t.Errorf("while another module came %d of %d requests failed: %q", len(failed), asked, failed)
	}
	// Whoever has not the Secret has not what it opened.
	w.plugin(t, "other", "header", image+"2", "")
	w.says(t, "WasmPlugin/other/header", "credential not found")

	f.page("/served.wasm", module(t, "more", 0))
	w.plugin(t, "shop", "served", f.URL+"/served.wasm", "")
	w.answers(t, "200 more two!")
	server.Stop()
	f.Close()
	before := w.Signal(t, "modules", syscall.SIGKILL)
	wait.For(t, "the plugin is there again", func() error {
		if now := w.Plugins(t)["modules"]; now.PID == before.PID || now.PID == 0 {
			return fmt.Errorf("it is %+v", now)
		}
		return nil
	})
	w.again(t, "200 more two!")
	log := w.Log()
	w.Kill()
	w.Plane = w.Again(t)
	w.Ready(t)
	w.again(t, "200 more two!")
	log += w.Log()
	if strings.Contains(log, password) || strings.Contains(log, "forbidden") {
		t.Errorf("the log has the password, or a right is missing:\n%s", log)
	}
	kept, err := filepath.Glob(w.dir + "/kept/*")
	if err != nil || len(kept) == 0 {
		t.Errorf("%q has no modules: %v", w.dir, err)
	}
}
