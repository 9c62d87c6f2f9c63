package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/artifact/liar"
	"github.com/coxswain-mesh/coxswain/internal/artifact/reference"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

var module = []byte("\x00asm\x01\x00\x00\x00 and so on")

// noDocker keeps the credentials of whoever runs the tests out of them.
func noDocker(t *testing.T) *Store {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	return &Store{Dir: t.TempDir()}
}

// plugin keeps an artifact of layers in a registry.
func plugin(t *testing.T, l *liar.Registry, tag string, c Config, layers ...ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	return l.Artifact(t, tag, ConfigType, c, layers...)
}

// source is where an artifact of a registry is.
func source(l *liar.Registry, rest string) Source {
	return Source{Reference: reference.Reference("oci://" + l.Host() + "/team/plugin" + rest), Timeout: 20 * time.Second, Bytes: 1 << 20}
}

func contentOf(t *testing.T, found *Found) []byte {
	t.Helper()
	text, err := os.ReadFile(found.Path)
	if err != nil {
		t.Fatal(err)
	}
	if sum := digest.FromBytes(text).Encoded(); sum != found.Sum {
		t.Errorf("the file has %s, and is said to have %s", sum, found.Sum)
	}
	return text
}

// refused wants an error with all words in it.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want %q", err, word)
		}
	}
}

// TestGet: a module by its tag and by its digest, and again when its registry is gone.
func TestGet(t *testing.T) {
	s, l := noDocker(t), liar.New(t)
	d := plugin(t, l, "1", Config{"wasip1", "wasm"}, l.Put(ModuleType, module))
	found, err := s.Get(t.Context(), source(l, ":1"), "")
	if err != nil {
		t.Fatal(err)
	}
	if got := contentOf(t, found); !bytes.Equal(got, module) || !found.Module || found.Digest != d.Digest.String() {
		t.Errorf("got %+v: %q", found, got)
	}
	l.Close()
	if found, err = s.Get(t.Context(), source(l, "@"+d.Digest.String()), ""); err != nil || !bytes.Equal(contentOf(t, found), module) {
		t.Errorf("from the store: %+v, %v", found, err)
	}
	if found, err = s.Get(t.Context(), source(l, ":1"), d.Digest.String()); err != nil || found.Digest != d.Digest.String() {
		t.Errorf("by what the tag meant: %+v, %v", found, err)
	}
	if _, err = s.Get(t.Context(), source(l, ":1"), ""); err == nil {
		t.Error("what a tag means now is known without the registry")
	}
	if err := s.Means("a", "oci://x/y:1", d.Digest.String()); err != nil ||
		s.Meant("a", "oci://x/y:1") != d.Digest.String() || s.Meant("b", "oci://x/y:1") != "" {
		t.Errorf("what a tag meant is not kept: %v", err)
	}
}

// TestSpoiled: what somebody changed in the store is fetched again.
func TestSpoiled(t *testing.T) {
	s, l := noDocker(t), liar.New(t)
	plugin(t, l, "1", Config{"wasip1", "wasm"}, l.Put(ModuleType, module))
	found, err := s.Get(t.Context(), source(l, ":1"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(found.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(found.Path, []byte("\x00asm, another"), 0o700); err != nil {
		t.Fatal(err)
	}
	if found, err = s.Get(t.Context(), source(l, ":1"), found.Digest); err != nil || !bytes.Equal(contentOf(t, found), module) {
		t.Errorf("got %+v, %v", found, err)
	}
}

// TestPlatforms: of an index it is what runs here.
func TestPlatforms(t *testing.T) {
	s, l := noDocker(t), liar.New(t)
	program := func(system, machine, text string) ocispec.Descriptor {
		d := plugin(t, l, "", Config{system, machine}, l.Put(ProgramType, []byte(text)))
		d.Platform = &ocispec.Platform{OS: system, Architecture: machine}
		return d
	}
	here, plan9 := program(runtime.GOOS, runtime.GOARCH, "here"), program("plan9", "mips", "there")
	index := func(tag string, all ...ocispec.Descriptor) {
		l.Manifest(t, tag, ocispec.MediaTypeImageIndex, ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: all})
	}
	index("both", plan9, here)
	index("other", plan9)
	if found, err := s.Get(t.Context(), source(l, ":both"), ""); err != nil || string(contentOf(t, found)) != "here" || found.Manifest != here.Digest.String() {
		t.Errorf("got %+v, %v", found, err)
	}
	_, err := s.Get(t.Context(), source(l, ":other"), "")
	refused(t, err, "it is for plan9/mips")
	_, err = s.Get(t.Context(), source(l, "@"+plan9.Digest.String()), "")
	refused(t, err, "it is for plan9/mips")
}

// TestLies: whatever a registry does, it is an error in time, nothing of it is kept, and no secret
// is told.
func TestLies(t *testing.T) {
	blob := func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/blobs/"+digest.FromBytes(module).String())
	}
	for name, c := range map[string]struct {
		twist func(w http.ResponseWriter, r *http.Request) bool
		rest  string
		want  []string
	}{
		"another blob": {func(w http.ResponseWriter, r *http.Request) bool {
			if blob(r) {
				fmt.Fprint(w, strings.Repeat("x", len(module)))
			}
			return blob(r)
		}, ":1", []string{"other bytes"}},
		"another manifest": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			fmt.Fprint(w, `{"layers":[]}`)
			return true
		}, "@sha256:" + strings.Repeat("0", 64), []string{"mismatch"}},
		"a digest that isn't so": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
			fmt.Fprint(w, `{"layers":[]}`)
			return true
		}, ":1", []string{"the registry says"}},
		"an endless blob": {func(w http.ResponseWriter, r *http.Request) bool {
			for blob(r) && r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					break
				}
			}
			return blob(r)
		}, ":1", []string{"more than"}},
		"an endless manifest": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
			for r.Method == http.MethodGet && r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					break
				}
			}
			return true
		}, ":1", nil},
		"it says nothing": {func(w http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, ":1", []string{"longer than pull.timeout"}},
		"half of it": {func(w http.ResponseWriter, r *http.Request) bool {
			if blob(r) {
				fmt.Fprint(w, "\x00asm")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
			return blob(r)
		}, ":1", []string{"longer than pull.timeout"}},
		"the link": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data?signature=hidden", http.StatusTemporaryRedirect)
			return true
		}, ":1", []string{"plain text"}},
		"the link, by TLS": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "https://169.254.169.254/latest?signature=hidden", http.StatusTemporaryRedirect)
			return true
		}, ":1", []string{"an address of the link itself"}},
		"round and round": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path+"?again", http.StatusTemporaryRedirect)
			return true
		}, ":1", []string{"elsewhere more than"}},
		"tokens in plain text": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://192.0.2.1/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}, ":1", []string{"plain text"}},
		"nobody": {func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}, ":1", []string{"401"}},
		"long words": {func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":"%s"}]}`, strings.Repeat("no \\u001b[31m", 500))
			return true
		}, ":1", []string{"…"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := noDocker(t), liar.New(t)
			plugin(t, l, "1", Config{"wasip1", "wasm"}, l.Put(ModuleType, module))
			l.Twist(c.twist)
			src := source(l, c.rest)
			if strings.Contains(strings.Join(c.want, ""), "timeout") {
				src.Timeout = 300 * time.Millisecond
			}
			_, err := s.Get(t.Context(), src, "")
			refused(t, err, c.want...)
			if err == nil {
				t.Fatal("it was taken")
			}
			if text := err.Error(); strings.Contains(text, "hidden") || strings.ContainsRune(text, '\x1b') || len(text) > 2*mostText {
				t.Errorf("the error says too much: %q", text)
			}
			if _, err := os.Stat(s.path(blobs, digest.FromBytes(module).Encoded())); err == nil && strings.Contains(name, "blob") {
				t.Error("it was kept")
			}
		})
	}
}

// TestSizes: what is larger than it may be isn't asked for.
func TestSizes(t *testing.T) {
	s, l := noDocker(t), liar.New(t)
	layer := l.Put(ModuleType, module)
	layer.Size = 1 << 40
	plugin(t, l, "huge", Config{}, layer)
	_, err := s.Get(t.Context(), source(l, ":huge"), "")
	refused(t, err, "pull.bytes")
	for _, path := range l.Asked() {
		if strings.Contains(path, layer.Digest.String()) {
			t.Errorf("it was asked for: %s", path)
		}
	}
	plugin(t, l, "small", Config{"wasip1", "wasm"}, l.Put(ModuleType, module))
	src := source(l, ":small")
	src.Bytes = uint64(len(module)) - 1
	_, err = s.Get(t.Context(), src, "")
	refused(t, err, "more than 17 bytes")
	src.Bytes++ // neither manifests nor configurations count
	if _, err = s.Get(t.Context(), src, ""); err != nil {
		t.Error(err)
	}
	plugin(t, l, "two", Config{}, l.Put(ModuleType, module), l.Put(ModuleType, []byte("x")))
	_, err = s.Get(t.Context(), source(l, ":two"), "")
	refused(t, err, "2 layers")
}

type entry struct {
	name, text string
	kind       byte
	link       string
}

// layer packs files.
func layer(t *testing.T, zip bool, files ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Size: int64(len(f.text)), Mode: 0o755, Typeflag: tar.TypeReg, Linkname: f.link}
		if f.kind != 0 {
			h.Typeflag, h.Size = f.kind, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(f.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !zip {
		return out.Bytes()
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// TestImages: of an image it is the one file that it runs, wherever that claims to be.
func TestImages(t *testing.T) {
	for name, c := range map[string]struct {
		entrypoint []string
		layers     [][]entry
		want       string
		args       int
		refused    string
	}{
		"a program": {[]string{"/bin/it", "-v"}, [][]entry{
			{{name: "bin/it", text: "below"}},
			{{name: "../../etc/passwd", text: "x"}, {name: "./bin/it", text: "it"}},
		}, "it", 1, ""},
		"a module": {nil, [][]entry{{{name: "plugin.wasm", text: string(module)}}}, string(module), 0, ""},
		"a link":   {[]string{"/it"}, [][]entry{{{name: "it", kind: tar.TypeSymlink, link: "/etc/passwd"}}}, "", 0, "no plain file"},
		"a device": {[]string{"/it"}, [][]entry{{{name: "it", kind: tar.TypeChar}}}, "", 0, "no plain file"},
		"no file":  {[]string{"/it"}, [][]entry{{{name: "that", text: "x"}}}, "", 0, "has no file"},
		"taken":    {[]string{"/it"}, [][]entry{{{name: "it", text: "x"}}, {{name: ".wh.it", text: ""}}}, "", 0, "takes"},
		"a bomb":   {[]string{"/it"}, [][]entry{{{name: "zeros", text: strings.Repeat("\x00", 3<<20)}, {name: "it", text: "x"}}}, "", 0, "pull.bytes"},
		"relative": {[]string{"it"}, [][]entry{{{name: "it", text: "x"}}}, "", 0, "absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := noDocker(t), liar.New(t)
			var config struct {
				OS           string `json:"os"`
				Architecture string `json:"architecture"`
				Config       any    `json:"config"`
			}
			config.OS, config.Architecture, config.Config = runtime.GOOS, runtime.GOARCH, map[string]any{"Entrypoint": c.entrypoint}
			text, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: l.Put(ocispec.MediaTypeImageConfig, text)}
			for i, files := range c.layers {
				mediaType := ocispec.MediaTypeImageLayer
				if i == len(c.layers)-1 {
					mediaType = ocispec.MediaTypeImageLayerGzip
				}
				m.Layers = append(m.Layers, l.Put(mediaType, layer(t, mediaType == ocispec.MediaTypeImageLayerGzip, files...)))
			}
			l.Manifest(t, "1", ocispec.MediaTypeImageManifest, m)
			found, err := s.Get(t.Context(), source(l, ":1"), "")
			if c.refused != "" {
				refused(t, err, c.refused)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(contentOf(t, found)); got != c.want || len(found.Args) != c.args {
				t.Errorf("got %q with %q", got, found.Args)
			}
		})
	}
}

// signer is a key and the file with its public half.
type signer struct {
	key  *ecdsa.PrivateKey
	file string
}

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return signer{key, file}
}

func (s signer) sign(t *testing.T, text []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(text)
	made, err := s.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// simple puts a signature where cosign had it before bundles.
func (s signer) simple(t *testing.T, l *liar.Registry, at, says digest.Digest) {
	t.Helper()
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, says)
	d := l.Put(simpleType, payload)
	d.Annotations = map[string]string{simpleSays: base64.StdEncoding.EncodeToString(s.sign(t, payload))}
	l.Manifest(t, "sha256-"+at.Encoded()+".sig", ocispec.MediaTypeImageManifest, ocispec.Manifest{
		MediaType: ocispec.MediaTypeImageManifest, Layers: []ocispec.Descriptor{d},
	})
}

// bundled puts a signature where cosign has it in a bundle.
func (s signer) bundled(t *testing.T, l *liar.Registry, at digest.Digest, predicate string) {
	t.Helper()
	const payloadType = "application/vnd.in-toto+json"
	payload := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],`+
		`"predicateType":%q,"predicate":{}}`, at.Encoded(), predicate)
	signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
	text, err := json.Marshal(map[string]any{"dsseEnvelope": map[string]any{
		"payload": payload, "payloadType": payloadType, "signatures": []any{map[string]any{"sig": s.sign(t, signed)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	const bundle = bundleType + ".v0.3+json"
	d := l.Manifest(t, "", ocispec.MediaTypeImageManifest, ocispec.Manifest{
		MediaType: ocispec.MediaTypeImageManifest, ArtifactType: bundle, Layers: []ocispec.Descriptor{l.Put(bundle, text)},
	})
	d.ArtifactType = bundle
	l.Manifest(t, "sha256-"+at.Encoded(), ocispec.MediaTypeImageIndex, ocispec.Index{
		MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{d},
	})
}

// TestSignatures: only what a key of the entry's signed, and as what it is, is taken; also later,
// from the store.
func TestSignatures(t *testing.T) {
	mine, other := newSigner(t), newSigner(t)
	for name, c := range map[string]struct {
		sign func(l *liar.Registry, d digest.Digest)
		good bool
	}{
		"none":                {func(*liar.Registry, digest.Digest) {}, false},
		"simple":              {func(l *liar.Registry, d digest.Digest) { mine.simple(t, l, d, d) }, true},
		"simple, of another":  {func(l *liar.Registry, d digest.Digest) { other.simple(t, l, d, d) }, false},
		"simple, for another": {func(l *liar.Registry, d digest.Digest) { mine.simple(t, l, d, digest.FromString("another")) }, false},
		"bundle":              {func(l *liar.Registry, d digest.Digest) { mine.bundled(t, l, d, signsAs) }, true},
		"bundle, of another":  {func(l *liar.Registry, d digest.Digest) { other.bundled(t, l, d, signsAs) }, false},
		"bundle, on how it was built": {func(l *liar.Registry, d digest.Digest) {
			mine.bundled(t, l, d, "https://slsa.dev/provenance/v1")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := noDocker(t), liar.New(t)
			d := plugin(t, l, "1", Config{"wasip1", "wasm"}, l.Put(ModuleType, module))
			c.sign(l, d.Digest)
			src := source(l, ":1")
			src.Key = mine.file
			found, err := s.Get(t.Context(), src, "")
			if !c.good {
				refused(t, err, "no key of", "signed")
				return
			}
			if err != nil || found.Signed == "" {
				t.Fatalf("got %+v, %v", found, err)
			}
			l.Close()
			if _, err := s.Get(t.Context(), src, found.Digest); err != nil {
				t.Errorf("from the store: %v", err)
			}
			src.Key = other.file
			if _, err := s.Get(t.Context(), src, found.Digest); err == nil {
				t.Error("another key's signature counts")
			}
		})
	}
	broken := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(broken, []byte("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, Source{Key: broken, Reference: "oci://127.0.0.1:1/x"}.Check(), "cosign.pub")
}

// TestCredentials: who is told to the registry is what a file like Docker's says, or a mounted
// Secret, and is in no error.
func TestCredentials(t *testing.T) {
	s, l := noDocker(t), liar.New(t)
	plugin(t, l, "1", Config{"wasip1", "wasm"}, l.Put(ModuleType, module))
	l.Twist(func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "me" && password == "hidden-word" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
		return true
	})
	file := filepath.Join(t.TempDir(), ".dockerconfigjson")
	write := func(password string) {
		text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, l.Host(), base64.StdEncoding.EncodeToString([]byte("me:"+password)))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src := source(l, ":1")
	_, err := s.Get(t.Context(), src, "")
	refused(t, err, "credential")
	src.Credentials = file
	write("not-that-word")
	_, err = s.Get(t.Context(), src, "")
	refused(t, err, "the registry does not know who asks", "401")
	if err != nil && strings.Contains(err.Error(), base64.StdEncoding.EncodeToString([]byte("me:not-that-word"))) {
		t.Errorf("the error tells the credentials: %v", err)
	}
	write("hidden-word")
	if _, err = s.Get(t.Context(), src, ""); err != nil {
		t.Error(err)
	}
	src.Credentials = filepath.Join(t.TempDir(), "absent")
	_, err = s.Get(t.Context(), src, "")
	refused(t, err, "pull.credentials")
}

// TestAddresses: where no registry is looked for.
func TestAddresses(t *testing.T) {
	remote := Source{Reference: "oci://registry.example.org/x"}
	for address, ok := range map[string]bool{
		"192.0.2.1:443": true, "10.0.0.1:443": true, "169.254.169.254:80": false, "[fe80::1]:443": false, "[::ffff:169.254.169.254]:443": false,
		"[64:ff9b::a9fe:a9fe]:443": false, "127.0.0.1:443": false, "[::1]:443": false, "0.0.0.0:443": false,
	} {
		if err := remote.admits(address); (err == nil) != ok && !proxied() {
			t.Errorf("%s: %v", address, err)
		}
	}
	local := Source{Reference: reference.Reference("oci://localhost:5000/x")}
	if err := local.admits("127.0.0.1:5000"); err != nil {
		t.Error(err)
	}
}

// TestPrune: the store stays within its bound, and keeps what is in use.
func TestPrune(t *testing.T) {
	s, l := noDocker(t), liar.New(t)
	s.Most = 4 << 10
	var all []*Found
	for _, tag := range []string{"1", "2", "3"} {
		plugin(t, l, tag, Config{"wasip1", "wasm"}, l.Put(ModuleType, append(append([]byte(nil), module...), bytes.Repeat([]byte(tag), 2<<10)...)))
		found, err := s.Get(t.Context(), source(l, ":"+tag), "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found)
		if tag == "1" {
			s.used = nil // as after a restart
		}
	}
	if _, err := os.Stat(all[0].Path); err == nil {
		t.Error("what nobody uses is kept beyond the bound")
	}
	for _, found := range all[1:] {
		contentOf(t, found)
	}
}
