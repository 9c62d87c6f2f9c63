package identity

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// TestProviders: with the provider custom the secure port has the files that are mounted where
// istiod's are, with none it is closed, and the plain port serves.
func TestProviders(t *testing.T) {
	dir := t.TempDir()
	secrets := filepath.Join(dir, "var/run/secrets/istiod")
	if err := errors.Join(os.MkdirAll(filepath.Join(secrets, "tls"), 0o755),
		os.MkdirAll(filepath.Join(secrets, "ca"), 0o755), os.Mkdir(filepath.Join(dir, "config"), 0o755)); err != nil {
		t.Fatal(err)
	}
	port := portFiles(t, secrets)
	err := errors.Join(
		os.Rename(filepath.Join(secrets, "port.pem"), filepath.Join(secrets, "tls/tls.crt")),
		os.Rename(filepath.Join(secrets, "port-key.pem"), filepath.Join(secrets, "tls/tls.key")),
		os.WriteFile(filepath.Join(secrets, "ca/root-cert.pem"), newRoot(t).text(), 0o600),
		os.WriteFile(filepath.Join(dir, "plugins.yaml"), []byte(set), 0o600), os.WriteFile(filepath.Join(dir, "tokens.yaml"), []byte(tokens), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(provider string) *world {
		w := &world{dir: dir}
		w.Plane = mesh.StartWith(t,
			func(cmd *exec.Cmd) { cmd.Dir, cmd.Env = dir, append(os.Environ(), "PILOT_CERT_PROVIDER="+provider) },
			binary, "config", "--plugins", "plugins.yaml")
		w.Ready(t)
		return w
	}
	custom := begin("custom")
	if own := certified(t, custom.dial(t, port), webToken); own.Leaf.URIs[0].String() != web {
		t.Errorf("it is of %v", own.Leaf.URIs)
	}
	custom.Stop(t)
	none := begin("none")
	for address, open := range map[string]bool{none.Secure: false, none.XDS: true} {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if (err == nil) != open {
			t.Errorf("%s: %v; open is %v", address, err, open)
		}
		if err == nil {
			_ = c.Close()
		}
	}
}
