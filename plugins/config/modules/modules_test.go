package modules

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	extensions "istio.io/api/extensions/v1alpha1"

	"github.com/coxswain-mesh/coxswain/internal/artifact/liar"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

var one, two = []byte("\x00asm\x01\x00\x00\x00 one"), []byte("\x00asm\x01\x00\x00\x00 two")

const quick = `"refresh": "10ms", "retry": "10ms", "maxRetry": "300ms"`

// begin starts the plugin; more is more of its config.
func begin(t *testing.T, more string) *plugintest.Harness {
	t.Helper()
	h := plugintest.Start(t, Plugin(), "{"+quick+more+"}")
	h.Update(kinds.WasmPlugin, nil)
	h.WaitSynced()
	return h
}

// in is a WasmPlugin of a namespace and an age.
func in(t *testing.T, namespace, name string, created int64, p *extensions.WasmPlugin) *sdk.Row {
	t.Helper()
	payload, err := kinds.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return &sdk.Row{Key: namespace + "/" + name, Created: created, Payload: payload}
}

// server has a page until another one is set; a nil one is 404.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	text  []byte
	asked int
}

func serve(t *testing.T, text []byte) *server {
	t.Helper()
	s := &server{text: text}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked++
		if s.text == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(s.text)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) set(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
}

func (s *server) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// has reports whether a WasmPlugin, NAMESPACE/NAME, has a module, with its bytes.
func has(key string, module []byte) func(map[string]*sdk.Row) bool {
	return func(rows map[string]*sdk.Row) bool {
		of, bytesOf := rows["WasmPlugin/"+key], rows[modules.BytesKey(modules.Sum(module))]
		if of == nil || bytesOf == nil || !bytes.Equal(bytesOf.Payload, module) {
			return false
		}
		m, err := modules.Parse("WasmPlugin/"+key, of.Payload)
		return err == nil && m.Module.SHA256 == modules.Sum(module)
	}
}

// says waits for a line about a module with a word in its error.
func says(h *plugintest.Harness, key, word string) {
	h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
		return fields["module"] == "WasmPlugin/"+key && strings.Contains(fields["error"], word)
	})
}

// Of what a URL leads to, Always means what it leads to now, and IfNotPresent what it led to first.
// A server that is away leaves what there is, also when the plugin starts anew.
func TestFetchedAndRenewed(t *testing.T) {
	s := serve(t, one)
	dir := t.TempDir()
	h := begin(t, `, "directory": "`+dir+`"`)
	always := &extensions.WasmPlugin{Url: s.URL + "/m", ImagePullPolicy: extensions.PullPolicy_Always}
	once := &extensions.WasmPlugin{Url: s.URL + "/other"}
	rows := []*sdk.Row{in(t, "a", "always", 0, always), in(t, "a", "once", 0, once)}
	h.Update(kinds.WasmPlugin, rows)
	h.WaitRows(modules.Table, has("a/always", one))
	h.WaitRows(modules.Table, has("a/once", one))
	s.set(two)
	h.WaitRows(modules.Table, has("a/always", two))
	if !has("a/once", one)(h.Rows(modules.Table)) {
		t.Error("a module that is to stay was fetched anew")
	}
	s.set(nil)
	says(h, "a/always", "404")
	if !has("a/always", two)(h.Rows(modules.Table)) {
		t.Error("what can't be fetched is gone")
	}
	if err := h.Drain(); err != nil {
		t.Fatal(err)
	}
	h = plugintest.Start(t, Plugin(), `{`+quick+`, "directory": "`+dir+`"}`)
	h.Update(kinds.WasmPlugin, rows)
	h.WaitSynced()
	for key, module := range map[string][]byte{"a/always": two, "a/once": one} {
		if !has(key, module)(h.Rows(modules.Table)) {
			t.Errorf("after a start %s has no module though it was kept", key)
		}
	}
	h.Update(kinds.WasmPlugin, nil, "a/always", "a/once")
	h.WaitRows(modules.Table, func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
	wait.For(t, "nothing is kept of it", func() error {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			return fmt.Errorf("%v, %v", left, err)
		}
		return nil
	})
}

// A module is taken as it is, packed, or out of an archive, within bounds, and as its sha256 says.
func TestWhatIsTaken(t *testing.T) {
	zip := func(text []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(text)
		_ = z.Close()
		return out.Bytes()
	}
	archive := func(name string, text []byte) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		_ = w.WriteHeader(&tar.Header{Name: "about", Size: 1, Mode: 0o600})
		_, _ = w.Write([]byte("x"))
		_ = w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600})
		_, _ = w.Write(text)
		_ = w.Close()
		return out.Bytes()
	}
	large := append(bytes.Clone(one), make([]byte, mostModule)...)
	for name, c := range map[string]struct {
		text      []byte
		sum, want string
	}{
		"plain":              {one, modules.Sum(one), ""},
		"packed":             {zip(one), "", ""},
		"an archive":         {archive("plugin.wasm", one), "", ""},
		"a packed archive":   {zip(archive("./plugin.wasm", one)), modules.Sum(one), ""},
		"another sum":        {one, modules.Sum(two), "not the one that sha256 names"},
		"another file":       {archive("other.wasm", one), "", "no WebAssembly module"},
		"a text in it":       {archive("plugin.wasm", []byte("text")), "", "no WebAssembly module"},
		"a page":             {[]byte("<html>"), "", "no WebAssembly module"},
		"nothing":            {[]byte{}, "", "no WebAssembly module"},
		"too large":          {large, "", "more than"},
		"large once opened":  {zip(large), "", "more"},
		"a large archive":    {archive("plugin.wasm", large), "", "more"},
		"gzip that is none":  {[]byte("\x1f\x8bnothing"), "", "no WebAssembly module"},
		"half of an archive": {archive("plugin.wasm", one)[:700], "", "no WebAssembly module"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.text)
			h := begin(t, "")
			h.Update(kinds.WasmPlugin, []*sdk.Row{in(t, "a", "p", 0, &extensions.WasmPlugin{Url: s.URL, Sha256: c.sum})})
			if c.want == "" {
				h.WaitRows(modules.Table, has("a/p", one))
				return
			}
			says(h, "a/p", c.want)
			if len(h.Rows(modules.Table)) > 0 {
				t.Error("it was published")
			}
		})
	}
}

// Whom nobody may ask is not asked, however that is said.
func TestAddresses(t *testing.T) {
	sent := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest?token=hidden", http.StatusFound))
	t.Cleanup(sent.Close)
	plain := serve(t, one)
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(secure.Close)
	l := liar.New(t)
	l.Twist(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "https://169.254.169.254/latest", http.StatusTemporaryRedirect)
		return true
	})
	for name, c := range map[string]struct{ url, config, want string }{
		"an address of the link":  {"http://169.254.169.254/m", "", "allowLinkLocal"},
		"one of IPv6":             {"https://[::ffff:169.254.169.254]/m", "", "allowLinkLocal"},
		"a registry there":        {"oci://169.254.169.254/m:1", "", "allowLinkLocal"},
		"a server that sends on":  {sent.URL, "", "allowLinkLocal"},
		"a registry that does":    {"oci://" + l.Host() + "/m:1", "", "allowLinkLocal"},
		"a blocked address":       {plain.URL, `, "blockedCIDRs": ["127.0.0.0/8"]`, "blockedCIDRs"},
		"an unknown authority":    {secure.URL, "", "certificate"},
		"a registry without name": {"oci://registry.example", "", "oci://REGISTRY"},
	} {
		t.Run(name, func(t *testing.T) {
			h := begin(t, c.config)
			h.Update(kinds.WasmPlugin, []*sdk.Row{in(t, "a", "p", 0, &extensions.WasmPlugin{Url: c.url})})
			h.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
				return strings.Contains(text+fields["error"], c.want)
			})
			if strings.Contains(strings.Join(h.Logs(), "\n"), "hidden") {
				t.Error("the log has what a URL asks for")
			}
		})
	}
	if plain.times() > 0 {
		t.Error("a blocked address was asked")
	}
}

// image keeps a module as an image for proxies in a registry.
func image(t *testing.T, l *liar.Registry, tag string, text []byte) ocispec.Descriptor {
	t.Helper()
	return l.Artifact(t, tag, "application/vnd.module.wasm.config.v1+json", map[string]string{"type": "envoy_proxy"},
		l.Put("text/plain", []byte("about it")), l.Put("application/vnd.module.wasm.content.layer.v1+wasm", text))
}

// TestSecrets: a registry is told the password that the Secret has which the resource names, of its
// own namespace; what was fetched so is nobody's who doesn't name it.
func TestSecrets(t *testing.T) {
	l := liar.New(t)
	var login atomic.Value
	login.Store("bWU6YS13b3Jk") // me:a-word
	l.Twist(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Basic "+login.Load().(string) {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	d := image(t, l, "1", one)
	h := begin(t, "")
	at := "oci://" + l.Host() + "/team/m:1"
	secret := func(namespace, auth string) *sdk.Row {
		text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, l.Host(), auth)
		return &sdk.Row{Key: namespace + "/pull", Payload: secrets.Content{Data: map[string][]byte{secrets.Docker: []byte(text)}}.Encode()}
	}
	h.Update(kinds.WasmPlugin, []*sdk.Row{
		in(t, "a", "p", 0, &extensions.WasmPlugin{Url: at, ImagePullSecret: "pull", Sha256: d.Digest.Encoded()}),
		in(t, "b", "none", 0, &extensions.WasmPlugin{Url: at}),
		in(t, "b", "pinned", 0, &extensions.WasmPlugin{Url: "oci://" + l.Host() + "/team/m@" + d.Digest.String()}),
		in(t, "b", "named", 0, &extensions.WasmPlugin{Url: at, ImagePullSecret: "pull"}),
		in(t, "b", "another", 0, &extensions.WasmPlugin{Url: at, ImagePullSecret: "a/pull"}),
	})
	h.WaitRows(secrets.Named, func(rows map[string]*sdk.Row) bool {
		return rows["WasmPlugin/Secret/a/pull"] != nil && rows["WasmPlugin/Secret/b/pull"] != nil
	})
	says(h, "a/p", "nobody has said yet")
	h.Update(secrets.Absences, []*sdk.Row{{Key: "Secret/b/pull", Payload: secrets.Absence{Reason: "it may not be read"}.Encode()}})
	says(h, "b/named", "it may not be read")
	h.Update(secrets.SecretTable, []*sdk.Row{secret("a", "d3Jvbmc6dGhpbmc=")})
	says(h, "a/p", "401")
	h.Update(secrets.SecretTable, []*sdk.Row{secret("a", login.Load().(string))})
	h.WaitRows(modules.Table, has("a/p", one))
	says(h, "b/none", "credential not found")
	says(h, "b/pinned", "credential not found")
	says(h, "b/another", "nobody has said yet")
	for key := range h.Rows(modules.Table) {
		if strings.HasPrefix(key, "WasmPlugin/b/") {
			t.Errorf("%s was fetched", key)
		}
	}
	text := strings.Join(h.Logs(), "\n")
	for _, word := range []string{"a-word", login.Load().(string), "d3Jvbmc6dGhpbmc="} {
		if strings.Contains(text, word) {
			t.Errorf("the log has %q", word)
		}
	}
}

// One namespace's many modules, and its servers that never answer, keep nobody else's away.
func TestNeighbours(t *testing.T) {
	var held atomic.Int32
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		held.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	s := serve(t, one)
	h := begin(t, `, "pull": {"timeout": "10m"}, "concurrent": 8, "concurrentPerNamespace": 3, "maxPerNamespace": 20`)
	var rows []*sdk.Row
	for n := range 25 {
		rows = append(rows, in(t, "evil", fmt.Sprint("p", n), int64(n), &extensions.WasmPlugin{Url: fmt.Sprint(silent.URL, "/", n)}))
	}
	h.Update(kinds.WasmPlugin, rows)
	h.Update(kinds.WasmPlugin, []*sdk.Row{in(t, "demo", "p", 99, &extensions.WasmPlugin{Url: s.URL})})
	h.WaitRows(modules.Table, has("demo/p", one))
	if n := held.Load(); n > 3 {
		t.Errorf("%d fetches of one namespace, want 3 at most", n)
	}
	h.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
		return strings.Contains(text, `"evil" name 5 modules more than the 20`)
	})
}

// What a namespace has fetched makes room for what it fetches, and what is in use stays.
func TestRoom(t *testing.T) {
	s := serve(t, nil)
	dir := t.TempDir()
	h := begin(t, `, "maxBytesPerNamespace": 5000, "directory": "`+dir+`"`)
	h.Update(kinds.WasmPlugin, []*sdk.Row{
		in(t, "a", "p", 0, &extensions.WasmPlugin{Url: s.URL, ImagePullPolicy: extensions.PullPolicy_Always}),
	})
	for n := range 20 {
		text := append(bytes.Clone(one), bytes.Repeat([]byte{byte(n)}, 1000)...)
		s.set(text)
		h.WaitRows(modules.Table, has("a/p", text))
	}
	var size int64
	_ = filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			size += info.Size()
		}
		return nil
	})
	if size > 7000 {
		t.Errorf("%d bytes are kept", size)
	}
}

// What a module is configured with changes with it: until the new one is there, it is what was said
// of the old one.
func TestSpecGoesWithItsModule(t *testing.T) {
	s := serve(t, one)
	h := begin(t, "")
	spec := func(url, name string) {
		h.Update(kinds.WasmPlugin, []*sdk.Row{in(t, "a", "p", 0, &extensions.WasmPlugin{Url: url, PluginName: name})})
	}
	named := func(name string) func(map[string]*sdk.Row) bool {
		return func(rows map[string]*sdk.Row) bool {
			if rows["WasmPlugin/a/p"] == nil {
				return false
			}
			m, err := modules.Parse("WasmPlugin/a/p", rows["WasmPlugin/a/p"].Payload)
			if err != nil {
				return false
			}
			c, err := m.Module.Config()
			return err == nil && c.PluginName == name
		}
	}
	spec(s.URL+"/1", "first")
	h.WaitRows(modules.Table, named("first"))
	spec(s.URL+"/1", "second")
	h.WaitRows(modules.Table, named("second"))
	s.set(nil)
	spec(s.URL+"/2", "third")
	says(h, "a/p", "404")
	if rows := h.Rows(modules.Table); !named("second")(rows) || !has("a/p", one)(rows) {
		t.Error("what is there was lost")
	}
	s.set(two)
	h.WaitRows(modules.Table, named("third"))
	h.WaitRows(modules.Table, has("a/p", two))
}

func TestAlways(t *testing.T) {
	const unsaid, always, present = extensions.PullPolicy_UNSPECIFIED_POLICY, extensions.PullPolicy_Always, extensions.PullPolicy_IfNotPresent
	digest := "oci://r/n:latest@sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		url    string
		policy extensions.PullPolicy
		want   bool
	}{
		{"oci://r/n", unsaid, true}, {"oci://r/n:latest", unsaid, true}, {"oci://r/n:1", unsaid, false}, {digest, unsaid, false},
		{"https://h/p", unsaid, false}, {"https://h/p", always, true}, {"oci://r/n:latest", present, false}, {"oci://r/n:1", always, true},
	} {
		if got, err := isAlways(c.policy, c.url); err != nil || got != c.want {
			t.Errorf("%s, %s: %v, %v", c.url, c.policy, got, err)
		}
	}
}

func TestConfig(t *testing.T) {
	for field, config := range map[string]string{
		"refresh": `{"refresh": "0s"}`, "pull.timeout": `{"pull": {"timeout": "0s"}}`, "pull.bytes": `{"pull": {"bytes": 1048576}}`,
		"concurrent": `{"concurrent": 0}`, "blockedCIDRs[0]": `{"blockedCIDRs": ["x"]}`, "directroy": `{"directroy": "x"}`,
	} {
		if got, _ := plugintest.Refusal(t, Plugin(), config); got != field {
			t.Errorf("%s: refused for %q", config, got)
		}
	}
}

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 2)
	plugintest.Start(t, Plugin(), config)
	rows := kinds.Read("plugin", []byte(blocks[1].Text))
	if len(rows) != 1 || rows[0].Row == nil || rows[0].Table != kinds.WasmPlugin {
		t.Errorf("rows %v", rows)
	}
}
