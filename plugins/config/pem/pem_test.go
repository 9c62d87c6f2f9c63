package pem

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	encoded "encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 3)
	t.Chdir(t.TempDir())
	want := ""
	for _, b := range blocks[1:] {
		if name := b.Name(); name == "rows" {
			want = b.Text
		} else {
			put(t, name, b.Text)
		}
	}
	h := plugintest.Start(t, Plugin(), config)
	h.WaitSynced()
	got := ""
	for key, row := range h.Rows(secrets.SecretTable) {
		got += secrets.SecretTable + " " + key + " " + row.Source + "\n"
	}
	if got != want {
		t.Errorf("rows: %q, want %q", got, want)
	}
}

// put writes a file in place of another one, at once.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(filepath.Dir(path), ".new")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// pair is a certificate and its key.
type pair struct{ chain, key string }

func newPair(t *testing.T) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	chain, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := func(of string, der []byte) string {
		return string(encoded.EncodeToMemory(&encoded.Block{Type: of, Bytes: der}))
	}
	return pair{text("CERTIFICATE", chain), text("PRIVATE KEY", private)}
}

// world is the plugin on a directory.
type world struct {
	*plugintest.Harness
	dir string
}

func start(t *testing.T, dir, config string) *world {
	t.Helper()
	w := &world{plugintest.Start(t, Plugin(), fmt.Sprintf(`{"dir": %q%s}`, dir, config)), dir}
	w.WaitSynced()
	return w
}

// serves waits until a Secret has a pair.
func (w *world) serves(key string, p pair) {
	w.WaitRows(secrets.SecretTable, func(rows map[string]*sdk.Row) bool { return has(rows[key], p) })
}

func has(row *sdk.Row, p pair) bool {
	if row == nil {
		return false
	}
	c, err := secrets.Decode(row)
	return err == nil && string(c.Data[secrets.Certificates]) == p.chain && string(c.Data[secrets.Key]) == p.key
}

// faulty waits until a fault says something, and nothing else is wrong; an empty text: until
// nothing is wrong.
func (w *world) faulty(text string) {
	w.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool {
		if text == "" {
			return len(rows) == 0
		}
		for _, row := range rows {
			return len(rows) == 1 && strings.Contains(string(row.Payload), text)
		}
		return false
	})
}

// TestRotates: what is half written, or doesn't fit, leaves what was good last; what is whole again
// is served, and a folder that is gone is none.
func TestRotates(t *testing.T) {
	first, second := newPair(t), newPair(t)
	dir := t.TempDir()
	at := func(file string) string { return filepath.Join(dir, "edge/web", file) }
	put(t, at("tls.crt"), first.chain)
	put(t, at("tls.key"), first.key)
	put(t, at("README"), "not a value")
	w := start(t, dir, "")
	kept := func(fault string) {
		t.Helper()
		w.faulty(fault)
		if !has(w.Rows(secrets.SecretTable)["edge/web"], first) {
			t.Errorf("%s: what was good last is not kept", fault)
		}
	}
	w.serves("edge/web", first)
	put(t, at("tls.crt"), second.chain)
	kept("tls.key is not the key of the first certificate in tls.crt")
	put(t, at("tls.crt"), second.chain[:len(second.chain)-40])
	kept("tls.crt ends amid a block")
	put(t, at("tls.crt"), "")
	kept("tls.crt is empty")
	if err := os.Remove(at("tls.crt")); err != nil {
		t.Fatal(err)
	}
	kept("it has no tls.crt and tls.key")
	put(t, at("tls.crt"), strings.Repeat("#", maxFile+1))
	kept("tls.crt has more than")
	put(t, at("tls.crt"), second.chain)
	put(t, at("tls.key"), second.key)
	w.serves("edge/web", second)
	w.faulty("")

	// The directory itself may go and come; what it had stays.
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	w.WaitLog(func(l sdk.Level, text string, _ map[string]string) bool {
		return l == sdk.Warn && strings.Contains(text, "what was read last stays")
	})
	if !has(w.Rows(secrets.SecretTable)["edge/web"], second) {
		t.Error("what the directory had is gone with it")
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	w.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
		return strings.Contains(text, "can be read again")
	})
	if err := os.RemoveAll(filepath.Join(dir, "edge/web")); err != nil {
		t.Fatal(err)
	}
	w.WaitRows(secrets.SecretTable, func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
	for _, line := range w.Logs() {
		if strings.Contains(line, first.key[40:80]) || strings.Contains(line, second.key[40:80]) {
			t.Errorf("a key is in the log: %s", line)
		}
	}
}

// TestCertbot: files that are links, which are changed one by one, by certbot's names in a folder
// NAME.
func TestCertbot(t *testing.T) {
	first, second := newPair(t), newPair(t)
	root := t.TempDir()
	live := filepath.Join(root, "live")
	for n, p := range map[int]pair{1: first, 2: second} {
		put(t, filepath.Join(root, fmt.Sprintf("archive/web.example/fullchain%d.pem", n)), p.chain)
		put(t, filepath.Join(root, fmt.Sprintf("archive/web.example/privkey%d.pem", n)), p.key)
	}
	lead := func(n int) {
		t.Helper()
		for _, file := range []string{"privkey", "fullchain"} {
			link := filepath.Join(live, "web.example", file+".pem")
			_ = os.Remove(link)
			if err := os.Symlink(fmt.Sprintf("../../archive/web.example/%s%d.pem", file, n), link); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(t, filepath.Join(live, "web.example/README"), "not a value")
	lead(1)
	w := start(t, live, `, "namespace": "edge"`)
	w.serves("edge/web.example", first)
	lead(2)
	w.serves("edge/web.example", second)
	w.faulty("")
	put(t, filepath.Join(live, "tls.key"), first.key)
	w.faulty("files must lie in a folder NAME of the directory")
}

// TestMounted: a volume that Kubernetes mounts from a Secret, all of whose files change at once.
func TestMounted(t *testing.T) {
	first, second := newPair(t), newPair(t)
	dir := t.TempDir()
	mount := filepath.Join(dir, "edge/web")
	swap := func(name string, p pair) {
		t.Helper()
		put(t, filepath.Join(mount, name, "tls.crt"), p.chain)
		put(t, filepath.Join(mount, name, "tls.key"), p.key)
		if err := os.Symlink(name, filepath.Join(mount, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(mount, "..data_tmp"), filepath.Join(mount, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("..2026_1", first)
	for _, file := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink("..data/"+file, filepath.Join(mount, file)); err != nil {
			t.Fatal(err)
		}
	}
	w := start(t, dir, `, "rescan": "1h"`)
	w.serves("edge/web", first)
	swap("..2026_2", second)
	w.serves("edge/web", second)
	w.faulty("")
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{}`: "dir", `{"dir": "/nowhere"}`: "dir", `{"dir": "/", "namespace": "a/b"}`: "namespace", `{"dir": "/", "rescan": "0s"}`: "rescan",
	} {
		if got, _ := plugintest.Refusal(t, Plugin(), config); got != field {
			t.Errorf("%s: refused for %q", config, got)
		}
	}
}
