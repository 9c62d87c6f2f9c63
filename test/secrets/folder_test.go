package secrets

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestFolder: certificates from a folder of PEM files, which is mounted as Kubernetes mounts a
// Secret, are served, rotated under requests none of which fails, held while they don't fit, and
// kept when they go.
func TestFolder(t *testing.T) {
	http, https := wait.Port(t), wait.Port(t)
	certificates := t.TempDir()
	w := newWorldOf(t, set+fmt.Sprintf("- {name: pem, kind: config, builtin: config/pem, config: {dir: %q, rescan: 1h}}\n", certificates), map[string]string{
		"gateway.yaml": fill(gateway, "NAMESPACE", "edge", "HTTPPORT", fmt.Sprint(http), "HTTPSPORT", fmt.Sprint(https)),
	})
	begun := time.Now()
	e := w.gateway(t, "edge", "web", "delta")
	e.Ready(t)
	wait.For(t, "plain HTTP is served", func() error { return plain(http) })
	took := time.Since(begun)
	w.says(t, "kubernetes://web", "there is no Secret edge/web")
	w.shows(t, "(IST0101)", "analyze", "--live")

	volume := mount{filepath.Join(certificates, "edge/web")}
	first, second, third := w.pair(t, "first"), w.pair(t, "second"), w.pair(t, "third")
	volume.swap(t, "..1", first)
	mount{filepath.Join(certificates, "edge/other")}.swap(t, "..1", first) // the guard holds the loss of all
	c := first.client(t, https, false)
	c.shows(t, first)
	stop := traffic(t, c, first.client(t, https, true))
	volume.swap(t, "..2", second)
	c.shows(t, second)
	volume.swap(t, "..3", pair{first.chain, second.key, nil})
	w.says(t, "edge/web", "tls.key is not the key of the first certificate in tls.crt")
	w.shows(t, "tls.key is not the key of the first certificate in tls.crt", "config")
	c.shows(t, second)
	if err := os.RemoveAll(volume.dir); err != nil {
		t.Fatal(err)
	}
	w.shows(t, "there is no Secret edge/web", "plugins")
	c.shows(t, second)
	volume.swap(t, "..4", third)
	c.shows(t, third)
	stop()
	happy(t, e, took > patience)
}

// mount is a volume as a kubelet writes it: links to the files of a folder to which the link ..data
// leads.
type mount struct{ dir string }

// swap changes all files at once.
func (m mount) swap(t *testing.T, name string, p pair) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(m.dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(m.dir, name, "tls.crt"), string(p.chain))
	put(t, filepath.Join(m.dir, name, "tls.key"), string(p.key))
	next := filepath.Join(m.dir, "..data_tmp")
	if err := os.Symlink(name, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(m.dir, "..data")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink("..data/"+file, filepath.Join(m.dir, file)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
}
