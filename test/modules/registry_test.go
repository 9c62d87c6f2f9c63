package modules

import (
	"encoding/base64"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/coxswain-mesh/coxswain/test/authority"
	"github.com/coxswain-mesh/coxswain/test/need"
	"github.com/coxswain-mesh/coxswain/test/program"
	"github.com/coxswain-mesh/coxswain/test/wait"
)

// registry starts CNCF's distribution, by TLS and with a password, and returns its address, the
// file of its authority, and a text like Docker's config.json.
func registry(t *testing.T) (at, ca, login string, server *program.Process) {
	t.Helper()
	tool := filepath.Join(program.Built(t, "test/artifacts/servers", "registry", "registry"), "registry")
	dir := t.TempDir()
	authority.New(t).IssueLocal(t, dir)
	const password = "a-word-that-nobody-may-see"
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	at = wait.Address(t)
	put(t, dir+"/users", "me:"+string(hash))
	put(t, dir+"/registry.yaml", fmt.Sprintf("version: 0.1\nlog: {accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %[1]s/kept}}\n"+
		"http:\n  addr: %[2]s\n  tls: {certificate: %[1]s/cert-chain.pem, key: %[1]s/key.pem}\nauth: {htpasswd: {realm: x, path: %[1]s/users}}\n", dir, at))
	server = program.Start(t, exec.Command(tool, "serve", dir+"/registry.yaml"))
	wait.For(t, "the registry answers", func() error {
		c, err := net.Dial("tcp", at)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	login = fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, at, base64.StdEncoding.EncodeToString([]byte("me:"+password)))
	return at, dir + "/root-cert.pem", login, server
}

// TestRegistry: the same with a registry as it is run: a tag that comes to mean another module, a
// digest, a registry that is gone, and a password that is in no log and on no page.
func TestRegistry(t *testing.T) {
	need.All(t)
	at, ca, login, server := registry(t)
	w := start(t, "pull: {ca: "+ca+"}")
	docker := filepath.Join(w.dir, "docker.json")
	put(t, docker, login)
	push := func(tag, value string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "module.wasm")
		put(t, file, string(module(t, value, 1000)))
		out, err := exec.Command(binary, "plugins", "push", at+"/team/header:"+tag, file, "--ca", ca, "--credentials", docker).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	push("1", "one!")
	w.plugin(t, "shop", "header", "oci://"+at+"/team/header:1", "imagePullSecret: registry", "imagePullPolicy: Always")
	w.answers(t, "503")
	put(t, w.dir+"/config/secret.yaml", fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: registry, namespace: shop}\n"+
		"type: kubernetes.io/dockerconfigjson\ndata: {.dockerconfigjson: %s}\n", base64.StdEncoding.EncodeToString([]byte(login))))
	w.answers(t, "200 one!")
	push("1", "two!")
	w.answers(t, "200 two!")
	server.Stop()
	w.says(t, "a module cannot be fetched", "refused")
	w.Kill()
	w.Plane = w.Again(t)
	w.Ready(t)
	w.again(t, "200 two!")
	secret := base64.StdEncoding.EncodeToString([]byte("me:a-word"))[:10]
	for name, text := range map[string]string{"log": w.Log(), "config": page(t, w, "/debug/configz"), "dump": page(t, w, "/debug/config_dump?proxyID=edge.shop")} {
		if strings.Contains(text, secret) || strings.Contains(text, "a-word-that") {
			t.Errorf("the %s has the password", name)
		}
	}
}

func page(t *testing.T, w *world, path string) string {
	t.Helper()
	text, err := w.Get(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
