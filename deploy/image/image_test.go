package main

import (
	"archive/tar"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// arguments name an image of this test's own program, for two platforms.
func arguments(t *testing.T, more ...string) []string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	notice := filepath.Join(t.TempDir(), "NOTICE")
	if err := os.WriteFile(notice, []byte("who wrote it\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return append([]string{
		"--program", "linux/amd64=" + program, "--program", "linux/arm64=" + program, "--documents", notice, "--version", "v1.2.3",
		"--revision", "abc", "--created", "1700000000", "--zones", filepath.Join(strings.TrimSpace(string(root)), "lib/time/zoneinfo.zip"),
	}, more...)
}

// made makes the image in a folder, and returns it.
func made(t *testing.T, args []string) v1.ImageIndex {
	t.Helper()
	to := filepath.Join(t.TempDir(), "image")
	if err := run(append(args, "--to", to)); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(to)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// TestReproducible: what goes in alone decides the digest.
func TestReproducible(t *testing.T) {
	first := digest(t, made(t, arguments(t)))
	if again := digest(t, made(t, arguments(t))); again != first {
		t.Errorf("of the same there are %s and %s", first, again)
	}
	for _, other := range [][]string{{"--version", "v1.2.4"}, {"--created", "1700000001"}, {"--revision", "abd"}} {
		if digest(t, made(t, arguments(t, other...))) == first {
			t.Errorf("%q changes nothing", other)
		}
	}
}

func TestContents(t *testing.T) {
	index := made(t, arguments(t))
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatal(err, manifest)
	}
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		if c.User != "65532:65532" || c.Entrypoint[0] != entry ||
			c.Labels["org.opencontainers.image.version"] != "v1.2.3" || config.Architecture != m.Platform.Architecture {
			t.Errorf("the configuration is %+v", config)
		}
		looked(t, image)
	}
}

// looked looks at the files of an image.
func looked(t *testing.T, image v1.Image) {
	t.Helper()
	files := map[string][]byte{}
	all := mutate.Extract(image)
	defer func() { _ = all.Close() }()
	for r := tar.NewReader(all); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files["/"+h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeSymlink {
			files["/"+h.Name] = []byte("-> " + h.Linkname)
		}
		mode := map[string]int64{entry[1:]: 0o755, alias[1:]: link, "tmp": 0o1777}[strings.Trim(h.Name, "/")]
		if mode == 0 {
			mode = 0o644
			if h.Typeflag == tar.TypeDir {
				mode = 0o755
			}
		}
		if h.Uid != 0 || h.Gid != 0 || h.Mode != mode || !h.ModTime.Equal(time.Unix(1700000000, 0)) {
			t.Errorf("%s is %d:%d's, %o, of %s", h.Name, h.Uid, h.Gid, h.Mode, h.ModTime)
		}
	}
	program, _ := os.Executable()
	if text, err := os.ReadFile(program); err != nil || string(files[entry]) != string(text) {
		t.Errorf("the program is another: %v", err)
	}
	if to := string(files[alias]); to != "-> coxswain" {
		t.Errorf("istioctl finds %q", to)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(files[certificates]) || strings.Count(string(files[certificates]), "BEGIN CERTIFICATE") < 80 {
		t.Errorf("the authorities are %.100s", files[certificates])
	}
	zones := filepath.Join(t.TempDir(), "zoneinfo.zip")
	if err := os.WriteFile(zones, files[zoneinfo], 0o600); err != nil || len(files[zoneinfo]) < 1e5 {
		t.Errorf("time zones: %v, %d bytes", err, len(files[zoneinfo]))
	}
	if string(files[documents+"/NOTICE"]) != "who wrote it\n" || !strings.Contains(string(files["/etc/passwd"]), "nonroot:x:65532:") {
		t.Errorf("documents or users are missing")
	}
	var parts spdx
	if err := json.Unmarshal(files[documents+"/sbom.spdx.json"], &parts); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range parts.Packages {
		names = append(names, p.Name)
	}
	if all := strings.Join(names, " "); !strings.Contains(all, "github.com/google/go-containerregistry") || !strings.Contains(all, "stdlib") {
		t.Errorf("it is made of %q", names)
	}
}

// TestRegistry: it is pushed to a registry that asks for a password, and pulled again.
func TestRegistry(t *testing.T) {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "a-secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="here"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	home := t.TempDir()
	t.Setenv("DOCKER_CONFIG", home)
	with := func(password string) error {
		text := `{"auths": {"` + host + `": {"username": "me", "password": "` + password + `"}}}`
		if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return run(arguments(t, "--push", host+"/mesh/coxswain:v1.2.3", "--plain"))
	}
	if err := with("not-it"); err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "not-it") {
		t.Errorf("with another password: %v", err)
	}
	if err := with("a-secret"); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host+"/mesh/coxswain:v1.2.3", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		image, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}),
			remote.WithAuth(&authn.Basic{Username: "me", Password: "a-secret"}))
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(image); err != nil {
			t.Error(err)
		}
	}
	beside(t, ref, remote.WithAuth(&authn.Basic{Username: "me", Password: "a-secret"}))
	there, err := remote.Index(ref, remote.WithAuth(&authn.Basic{Username: "me", Password: "a-secret"}))
	if err != nil {
		t.Fatal(err)
	}
	if want := digest(t, made(t, arguments(t))); digest(t, there) != want {
		t.Errorf("the registry has %s, not %s", digest(t, there), want)
	}
}

// beside looks for a list of parts beside each image of a reference.
func beside(t *testing.T, ref name.Reference, key remote.Option) {
	t.Helper()
	index, err := remote.Index(ref, key)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		of := ref.Context().Digest(m.Digest.String())
		found, err := remote.Referrers(of, key)
		if err != nil {
			t.Fatal(err)
		}
		lists, err := found.IndexManifest()
		if err != nil || len(lists.Manifests) != 1 || lists.Manifests[0].ArtifactType != string(spdxType) {
			t.Fatalf("beside %s there are %+v: %v", of, lists, err)
		}
		list, err := remote.Image(ref.Context().Digest(lists.Manifests[0].Digest.String()), key)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := list.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers: %v", len(layers), err)
		}
		text, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		var parts spdx
		if err := json.NewDecoder(text).Decode(&parts); err != nil || len(parts.Packages) < 2 {
			t.Errorf("it has %d parts: %v", len(parts.Packages), err)
		}
	}
}

// TestList: of a program alone its parts are written down, and nothing else.
func TestList(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "list.json")
	if err := run([]string{"--program", "linux/amd64=" + program, "--version", "v1.2.3", "--parts", to}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	var parts spdx
	if err := json.Unmarshal(text, &parts); err != nil || parts.Packages[0].Version != "v1.2.3" {
		t.Errorf("%v: %.200s", err, text)
	}
}

func TestRefused(t *testing.T) {
	exists := t.TempDir()
	text := filepath.Join(exists, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"say at least one":      {"--to", "x"},
		"one of --to and":       arguments(t),
		"exists":                arguments(t, "--to", exists),
		"is not OS/ARCH":        {"--program", "linux"},
		"no such file":          {"--program", "linux/amd64=nowhere", "--to", filepath.Join(exists, "new")},
		"unrecognized file":     {"--program", "linux/amd64=" + text, "--to", filepath.Join(exists, "new")},
		"one --program and --p": arguments(t, "--parts", "x"),
		"could not parse refe":  arguments(t, "--push", "NOT A NAME"),
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, err := os.Stat(filepath.Join(exists, "new")); err == nil {
		t.Error("something was written all the same")
	}
}
