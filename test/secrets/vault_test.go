package secrets

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/vault/api"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// vault is a server of HashiCorp's Vault, by HTTPS.
type vault struct {
	dir, address, own string
	cmd               *exec.Cmd
	client            *api.Client
}

// newVault starts one with a key-value store at secret, and a role that may read what is below
// mesh.
func newVault(t *testing.T, own string) (v *vault, role, secretID string) {
	t.Helper()
	v = &vault{dir: t.TempDir(), address: wait.Address(t), own: own}
	v.start(t)
	v.write(t, "sys/mounts/secret", map[string]any{"type": "kv", "options": map[string]any{"version": "2"}})
	v.write(t, "sys/auth/approle", map[string]any{"type": "approle"})
	v.write(t, "sys/policies/acl/mesh", map[string]any{
		"policy": `path "secret/metadata/mesh/*" {capabilities = ["list"]} path "secret/data/mesh/*" {capabilities = ["read"]}`,
	})
	v.write(t, "auth/approle/role/mesh", map[string]any{"token_policies": "mesh", "token_ttl": "2s"})
	got, err := v.client.Logical().Read("auth/approle/role/mesh/role-id")
	if err != nil {
		t.Fatal(err)
	}
	made := v.write(t, "auth/approle/role/mesh/secret-id", nil)
	return v, got.Data["role_id"].(string), made.Data["secret_id"].(string)
}

// start starts it, again after stop.
func (v *vault) start(t *testing.T) {
	t.Helper()
	v.cmd = exec.Command(need.Program(t, "vault/go.sum", "vault", "vault"), "-dir", v.dir, "-address", v.address,
		"-cert", v.own+"/cert-chain.pem", "-key", v.own+"/key.pem")
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd := v.cmd
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	wait.For(t, "Vault answers", func() error {
		text, err := os.ReadFile(filepath.Join(v.dir, "opened"))
		if err != nil {
			return err
		}
		var opened struct{ Root string }
		if err := json.Unmarshal(text, &opened); err != nil {
			return err
		}
		c := api.DefaultConfig()
		c.Address = "https://" + v.address
		if err := c.ConfigureTLS(&api.TLSConfig{CACert: v.own + "/root-cert.pem"}); err != nil {
			return err
		}
		if v.client, err = api.NewClient(c); err != nil {
			return err
		}
		v.client.SetToken(opened.Root)
		health, err := v.client.Sys().Health()
		if err == nil && (health.Sealed || !health.Initialized || health.Standby) {
			err = fmt.Errorf("it is %+v", health)
		}
		return err
	})
}

// stop kills it.
func (v *vault) stop(t *testing.T) {
	t.Helper()
	if err := v.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = v.cmd.Wait()
}

func (v *vault) write(t *testing.T, path string, data map[string]any) *api.Secret {
	t.Helper()
	made, err := v.client.Logical().Write(path, data)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return made
}

// put writes a secret of the store.
func (v *vault) put(t *testing.T, name string, p pair) {
	t.Helper()
	data := map[string]any{"tls.crt": string(p.chain), "tls.key": string(p.key), "owner": "edge"}
	if _, err := v.client.KVv2("secret").Put(context.Background(), "mesh/"+name, data); err != nil {
		t.Fatal(err)
	}
}

// TestVault: certificates from a real Vault are served to a real Envoy, rotated under requests none
// of which fails, held while they don't fit, and kept while they are deleted, while the server is
// away, and when it comes back; the role's token, which lasts two seconds, is renewed all the time.
func TestVault(t *testing.T) {
	need.All(t)
	http, https := wait.Port(t), wait.Port(t)
	files := t.TempDir()
	secretID := filepath.Join(files, "secret-id")
	var v *vault
	w := newWorldBy(t, map[string]string{
		"gateway.yaml": fill(gateway, "NAMESPACE", "edge", "HTTPPORT", fmt.Sprint(http), "HTTPSPORT", fmt.Sprint(https)),
	}, func(w *world) string {
		own := w.folder(t, "vault")
		w.authority.IssueLocal(t, own)
		var role, secret string
		v, role, secret = newVault(t, own)
		put(t, secretID, secret+"\n")
		return set + fmt.Sprintf("- {name: vault, kind: config, builtin: config/vault, config: {address: %q, tls: {ca: "+
			"%q}, path: mesh, interval: 1s, timeout: 2s, appRole: {roleID: %q, secretIDFile: %q}}}\n",
			"https://"+v.address, own+"/root-cert.pem", role, secretID)
	})
	e := w.gateway(t, "edge", "web", "delta")
	e.Ready(t)
	wait.For(t, "plain HTTP is served", func() error { return plain(http) })
	w.says(t, "kubernetes://web", "there is no Secret edge/web")

	first, second, third := w.pair(t, "first"), w.pair(t, "second"), w.pair(t, "third")
	v.put(t, "edge/web", first)
	v.put(t, "edge/other", first) // the guard holds the loss of all
	c := first.client(t, https, false)
	c.shows(t, first)
	stop := traffic(t, c, first.client(t, https, true))
	v.put(t, "edge/web", second)
	c.shows(t, second)
	v.put(t, "edge/web", pair{first.chain, second.key, nil})
	w.says(t, "edge/web", "tls.key is not the key of the first certificate in tls.crt")
	c.shows(t, second)
	v.stop(t)
	w.shows(t, "the store can't be read", "config")
	c.shows(t, second)
	v.start(t)
	v.put(t, "edge/web", third)
	c.shows(t, third)
	if err := v.client.KVv2("secret").DeleteMetadata(context.Background(), "mesh/edge/web"); err != nil {
		t.Fatal(err)
	}
	w.shows(t, "there is no Secret edge/web", "plugins")
	c.shows(t, third)
	v.put(t, "edge/web", first)
	c.shows(t, first)

	// A right that is withdrawn takes nothing away, and is said.
	v.write(t, "sys/policies/acl/mesh", map[string]any{"policy": `path "secret/metadata/mesh/*" {capabilities = ["list"]}`})
	w.shows(t, "needs read on secret/data/mesh/edge/web", "config")
	c.shows(t, first)
	stop()
	for _, line := range e.Unhappy(t) {
		t.Error(line)
	}
	for _, secret := range []string{string(first.key), strings.TrimSpace(string(read(t, secretID)))} {
		if strings.Contains(w.plane.LastLines(1<<20), strings.Split(secret, "\n")[min(1, strings.Count(secret, "\n"))]) {
			t.Error("a secret is in the log")
		}
	}
}
