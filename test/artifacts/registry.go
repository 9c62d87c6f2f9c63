// Package artifacts starts a real registry of artifacts for tests: CNCF's distribution, which
// `make registry` builds.
package artifacts

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Start starts a registry in plain text, and returns its address and what ends it.
func Start(t testing.TB) (at string, server *program.Process) {
	t.Helper()
	return start(t, "")
}

// StartPrivate starts one that lets in who knows a password.
func StartPrivate(t testing.TB, user, password string) (at string, server *program.Process) {
	t.Helper()
	return start(t, users(t, user, password))
}

// StartSecure starts one that does so by TLS. The file roots has who signed its certificate.
func StartSecure(t testing.TB, user, password string) (at, roots string, server *program.Process) {
	t.Helper()
	dir := t.TempDir()
	authority.New(t).IssueLocal(t, dir)
	at, server = start(t, fmt.Sprintf("  tls: {certificate: %[1]s/cert-chain.pem, key: %[1]s/key.pem}\n", dir)+
		users(t, user, password))
	return at, filepath.Join(dir, "root-cert.pem"), server
}

// users are lines of settings by which one user is known.
func users(t testing.TB, user, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, append([]byte(user+":"), hash...), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("auth: {htpasswd: {realm: x, path: %s}}\n", file)
}

// start starts one with more lines of its settings.
func start(t testing.TB, more string) (at string, server *program.Process) {
	t.Helper()
	tool := filepath.Join(program.Built(t, "test/artifacts/servers", "registry", "registry"), "registry")
	at = wait.Address(t)
	file := filepath.Join(t.TempDir(), "registry.yaml")
	text := fmt.Sprintf("version: 0.1\nlog: {accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s}}\n"+
		"http:\n  addr: %s\n%s", t.TempDir(), at, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server = program.Start(t, exec.Command(tool, "serve", file))
	wait.For(t, "the registry answers", func() error {
		c, err := net.Dial("tcp", at)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	return at, server
}
