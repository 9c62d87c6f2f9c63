// Package artifacts_test tries plugins of a real registry as users have them: pushed, run, swapped
// and run again without the registry, by the real program.
package artifacts_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/artifacts"
	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) { mesh.Plain(&binary, m.Run) }

// say runs the program.
func say(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.Command(binary, args...).CombinedOutput()
	t.Logf("coxswain %s\n%s", strings.Join(args, " "), out)
	return string(out), err
}

// must runs the program, and wants all words in what it says.
func must(t *testing.T, words []string, args ...string) string {
	t.Helper()
	out, err := say(t, args...)
	for _, word := range words {
		if err != nil || !strings.Contains(out, word) {
			t.Fatalf("want success and %q: %v", word, err)
		}
	}
	return out
}

var digests = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// TestStory: a program is pushed, found, run, swapped for another one, and runs again after its
// registry has gone.
func TestStory(t *testing.T) {
	need.All(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	at, server := artifacts.Start(t)
	mesh.RuntimeDir(t)
	dir := t.TempDir()
	name := at + "/team/memory"
	push := func(tag, file string) string {
		here, there := runtime.GOOS+"/"+runtime.GOARCH+"="+file, "plan9/arm="+filepath.Join(dir, "other")
		out := must(t, []string{"@sha256:"}, "plugins", "push", name+":"+tag, here, there, "--annotation", "org.example.about=x")
		return digests.FindString(out)
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), []byte("another platform's"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := push("1", binary)
	must(t, []string{"team/memory"}, "plugins", "search", at, "mem")
	must(t, []string{"1\n"}, "plugins", "search", name)
	must(t, []string{first, "plan9/arm", runtime.GOOS + "/" + runtime.GOARCH, "org.example.about", "0 signatures"}, "plugins", "inspect", name+":1")
	must(t, []string{"a program of", first}, "plugins", "pull", name+":1", "--to", filepath.Join(dir, "pulled"))

	file := filepath.Join(dir, "plugins.yaml")
	set := fmt.Sprintf(`plugins:
  - name: memory
    kind: registry
    plugin: oci://%s:1 # ours
    process: {args: [plugin, registry/memory]}
    config: {services: []}
`, name)
	if err := os.WriteFile(file, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := say(t, "plugins", "search", at, "nobody", "-o", "json"); err != nil || out != "[]\n" {
		t.Errorf("a search that finds nothing: %v", err)
	}
	if out, err := say(t, "plugins", "search", at+"/absent"); err == nil || !strings.Contains(out, "the registry has not got it (status 404") {
		t.Error("tags of what isn't there are listed")
	}
	if out, err := say(t, "validate", file); err == nil || !strings.Contains(out, "coxswain plugins pin") {
		t.Error("a bare tag is taken without insecure")
	}
	must(t, []string{"memory is pinned"}, "plugins", "pin", file)
	must(t, []string{"nothing is wrong"}, "validate", file)
	plane := mesh.Start(t, binary, "", "--plugins", file, "--stateDir", filepath.Join(dir, "state"))
	plane.Ready(t)
	must(t, []string{"artifact: oci://" + name + ":1@" + first, "process"}, "plugins", "show", "memory")

	another := filepath.Join(dir, "another")
	text, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(another, append(text, 0), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	second := push("2", another)
	must(t, []string{first, second, "compared"}, "plugins", "swap", "memory", "--plugin", "oci://"+name+":2", "--dry-run")
	must(t, []string{first, second, "switched"}, "plugins", "swap", "memory", "--plugin", "oci://"+name+":2")
	written, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(written), name+":2@"+second+" # ours") {
		t.Errorf("the file became\n%s%v", written, err)
	}

	server.Stop()
	plane.Kill()
	plane = plane.Again(t)
	plane.Ready(t)
	must(t, []string{":2@" + second}, "plugins", "show", "memory")
	must(t, []string{"switched"}, "plugins", "restart", "memory")
	if out, err := say(t, "plugins", "swap", "memory", "--plugin", "oci://"+name+":3"); err == nil || !strings.Contains(out, "refused") {
		t.Error("a swap for what can't be had was done")
	}
	must(t, []string{":2@" + second, "serving"}, "plugins", "show", "memory")
}

// module writes a file that begins as a module does.
func module(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "module")
	if err := os.WriteFile(file, []byte("\x00asm\x01\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPrivate: a registry that wants a password, by TLS.
func TestPrivate(t *testing.T) {
	need.All(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	dir := t.TempDir()
	const password = "a-word-that-nobody-may-see"
	docker := filepath.Join(dir, ".dockerconfigjson")
	at, ca, _ := artifacts.StartSecure(t, "me", password)
	login := func(at, as string) {
		text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, at, base64.StdEncoding.EncodeToString([]byte("me:"+as)))
		if err := os.WriteFile(docker, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	login("other.example", password)
	name, file := at+"/team/module:1", module(t, dir)
	refused := func(word string, args ...string) {
		t.Helper()
		if out, err := say(t, args...); err == nil || !strings.Contains(out, word) || strings.Contains(out, password) {
			t.Errorf("want a refusal with %q", word)
		}
	}
	known := []string{"--ca", ca, "--credentials", docker}
	refused("credential", append([]string{"plugins", "push", name, file}, known...)...)
	login(at, password+"!")
	refused("401", append([]string{"plugins", "push", name, file}, known...)...)
	login(at, password)
	must(t, []string{"@sha256:"}, append([]string{"plugins", "push", name, file}, known...)...)
	must(t, []string{"a module of"}, append([]string{"plugins", "pull", name, "--to", filepath.Join(dir, "pulled")}, known...)...)
	refused("certificate", "plugins", "inspect", name, "--credentials", docker, "--ca", other(t))
}

// other is the certificate of an authority that nobody knows.
func other(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	authority.New(t).IssueLocal(t, dir)
	return filepath.Join(dir, "root-cert.pem")
}

// TestSigned: what cosign's own program signs is taken, in bundles and as it was before; what
// another key signed isn't.
func TestSigned(t *testing.T) {
	need.All(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("COSIGN_PASSWORD", "")
	tool := filepath.Join(program.Built(t, "test/artifacts/cosign", "cosign", "cosign"), "cosign")
	at, _ := artifacts.Start(t)
	dir := t.TempDir()
	cosign := func(args ...string) {
		t.Helper()
		cmd := exec.Command(tool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cosign %v: %v\n%s", args, err, out)
		}
	}
	cosign("generate-key-pair", "--output-key-prefix", "mine")
	cosign("generate-key-pair", "--output-key-prefix", "another")
	file := module(t, dir)
	for tag, more := range map[string][]string{"bundle": nil, "before": {"--new-bundle-format=false"}} {
		name := at + "/team/" + tag + ":1"
		ref := strings.TrimSpace(must(t, []string{"@sha256:"}, "plugins", "push", name, file))
		refused := func(key string) {
			t.Helper()
			out, err := say(t, "plugins", "pull", name, "--key", filepath.Join(dir, key), "--to", filepath.Join(dir, "not"+tag))
			if err == nil || !strings.Contains(out, "cosign sign --key") {
				t.Error("it is taken without a signature of the key's")
			}
		}
		refused("mine.pub")
		cosign(append([]string{"sign", "--key", "mine.key", "--tlog-upload=false", "--use-signing-config=false", "--yes",
			"--allow-http-registry", "--allow-insecure-registry", strings.TrimPrefix(ref, "oci://")}, more...)...)
		refused("another.pub")
		must(t, []string{"signed by key"}, "plugins", "pull", name, "--key", filepath.Join(dir, "mine.pub"), "--to", filepath.Join(dir, tag))
		must(t, []string{"signed by key"}, "plugins", "inspect", name, "--key", filepath.Join(dir, "mine.pub"))
	}
}
