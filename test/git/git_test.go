// Package git tries config/git in a control plane, with repositories that git itself makes.
package git_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/mesh"
	"github.com/coxswain-mesh/coxswain/test/need"
	"github.com/coxswain-mesh/coxswain/test/wait"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) { mesh.Main(&program, m.Run) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// git runs git in a folder and returns what it says.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits all and returns the commit's short name.
func commit(t *testing.T, dir string) string {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "change")
	return git(t, dir, "rev-parse", "HEAD")[:12]
}

func entry(name, host string) string {
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: %s, namespace: shop}\nspec:\n  hosts: [%s.example]\n  resolution: DNS\n  ports: [{number: 80, name: http, protocol: HTTP}]\n", name, host)
}

// TestBranch: proxies follow a branch, `coxswain config` says which commit an object came with, a mistake keeps the one before, and a commit that
// takes all away is held.
func TestBranch(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		need.Missing(t, "git")
	}
	repository := t.TempDir()
	in := func(name string) string { return filepath.Join(repository, name) }
	git(t, repository, "init", "-q", "-b", "main")
	for _, name := range []string{"a", "b", "c"} {
		write(t, in(name+".yaml"), entry(name, name))
	}
	first := commit(t, repository)
	set, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plugins := filepath.Join(t.TempDir(), "plugins.yaml")
	write(t, plugins, string(set)+fmt.Sprintf("  - {name: branch, kind: config, builtin: config/git, config: {repository: %q, interval: 1s}}\n", repository))
	p := mesh.Start(t, program, t.TempDir(), "--plugins", plugins)
	p.Ready(t)
	says := func(words ...string) {
		t.Helper()
		wait.For(t, fmt.Sprintf("coxswain config says %q", words), func() error {
			out, err := exec.Command(program, "config", "--addr", p.HTTP).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			for line := range strings.Lines(string(out)) {
				found := true
				for _, word := range words {
					found = found && strings.Contains(line, word)
				}
				if found {
					return nil
				}
			}
			return fmt.Errorf("it says\n%s", out)
		})
	}
	bootstrap := p.Bootstrap(t, "--ip", "127.0.0.5", "--namespace", "shop", "--interception", "NONE")
	has := func(host string) {
		t.Helper()
		wait.For(t, "the proxy has "+host, func() error {
			names := strings.Join(mesh.Names(t, p.Fetch(t, bootstrap, "type.googleapis.com/envoy.config.cluster.v3.Cluster")), " ")
			if !strings.Contains(names, "outbound|80||"+host+".example") {
				return fmt.Errorf("it has %s", names)
			}
			return nil
		})
	}
	has("a")
	says("shop/a", "ok", "git:a.yaml@"+first+":1:1", "branch")
	write(t, in("a.yaml"), entry("a", "aa"))
	second := commit(t, repository)
	has("aa")
	says("shop/a", "ok", "git:a.yaml@"+second+":1:1")
	says("shop/b", "ok", "git:b.yaml@"+first+":1:1")
	write(t, in("a.yaml"), strings.Replace(entry("a", "aaa"), "DNS", "DSN", 1))
	third := commit(t, repository)
	says("git:a.yaml@"+third+":6:15", "spec.resolution")
	says("shop/a", "refused", "git:a.yaml@"+second+":1:1")
	has("aa")

	git(t, repository, "rm", "-q", "a.yaml", "b.yaml", "c.yaml")
	commit(t, repository)
	wait.For(t, "that much is held", func() error {
		if !strings.Contains(p.Log(), "coxswain hold show branch") {
			return fmt.Errorf("%s", p.LastLines(5))
		}
		return nil
	})
	has("aa")
	git(t, repository, "reset", "-q", "--hard", second)
	write(t, in("d.yaml"), entry("d", "d"))
	commit(t, repository)
	has("d")
	has("b")
}
