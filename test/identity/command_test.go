package identity

import (
	"crypto/tls"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// certificateOf runs `coxswain certificate` with the token of a file, and returns what it says.
func (w *world) certificateOf(t *testing.T, token string, args ...string) (string, error) {
	t.Helper()
	w.put(t, "token", token)
	args = append([]string{"certificate", "--addr", w.Secure, "--roots", filepath.Join(w.dir, "root-cert.pem"), "--dir", filepath.Join(w.dir, "certs")},
		args...)
	out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
	return string(out), err
}

// serial is the number of the certificate in the folder, whose key must be its own.
func (w *world) serial(t *testing.T) string {
	t.Helper()
	number, err := w.own()
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// own reads the same; between a certificate and its key others may take their place.
func (w *world) own() (serial string, err error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(w.dir, "certs/cert-chain.pem"), filepath.Join(w.dir, "certs/key.pem"))
	if err != nil {
		return "", err
	}
	return own.Leaf.SerialNumber.String(), nil
}

// TestCommand: `coxswain certificate` gets a certificate with a token, the next one with the
// certificate alone, and says what is wrong.
func TestCommand(t *testing.T) {
	w := start(t, func(dir string) {
		text := strings.Replace(set, "keep: file,", "keep: file, rootsFile: root-cert.pem,", 1)
		if err := os.WriteFile(filepath.Join(dir, "plugins.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	token := []string{"--token", filepath.Join(w.dir, "token")}
	if said, err := w.certificateOf(t, "not-a-token-0123456789", token...); err == nil ||
		!strings.Contains(said, "the token is unknown") || strings.Contains(said, "not-a-token") {
		t.Errorf("another token: %v, %s", err, said)
	}
	if said, err := w.certificateOf(t, webToken, append(token, "--serverName", "another.example")...); err == nil ||
		!strings.Contains(said, "another.example") {
		t.Errorf("another server: %v, %s", err, said)
	}
	if said, err := w.certificateOf(t, webToken, append(token, "--ttl", "49h")...); err == nil || !strings.Contains(said, "48h") {
		t.Errorf("too long: %v, %s", err, said)
	}
	if said, err := w.certificateOf(t, webToken, token...); err != nil || !strings.Contains(said, web) {
		t.Fatalf("%v, %s", err, said)
	}
	first := w.serial(t)
	if said, err := w.certificateOf(t, ""); err != nil {
		t.Fatalf("%v, %s", err, said)
	}
	if w.serial(t) == first {
		t.Error("it is the same certificate")
	}
	info, err := os.Stat(filepath.Join(w.dir, "certs/key.pem"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info.Mode(), err)
	}
}

// TestFollow: with --follow the next certificates come, over a time without the control plane, too.
func TestFollow(t *testing.T) {
	w := start(t, func(dir string) {
		text := strings.Replace(set, "keep: file,", "keep: file, rootsFile: root-cert.pem,", 1)
		if err := os.WriteFile(filepath.Join(dir, "plugins.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	w.put(t, "token", webToken)
	cmd := exec.Command(binary, "certificate", "--addr", w.Secure, "--roots", filepath.Join(w.dir, "root-cert.pem"), "--dir", filepath.Join(w.dir, "certs"),
		"--token", filepath.Join(w.dir, "token"), "--ttl", "6s", "--follow")
	p := program.Start(t, cmd)
	next := func(before string) (serial string) {
		wait.For(t, "the next certificate", func() error {
			if !p.Runs() {
				t.Fatalf("it has ended: %s", p.Last())
			}
			var err error
			if serial, err = w.own(); err == nil && serial == before {
				return os.ErrExist
			}
			return err
		})
		return serial
	}
	second := next(next(""))
	w.Stop(t)
	wait.For(t, "it tries in vain", func() error {
		if !strings.Contains(p.Last(), "it is tried again") {
			return errors.New(p.Last())
		}
		return nil
	})
	w.Plane = w.Again(t)
	w.Ready(t)
	next(second)
}
