// Package git tries config/git in a control plane, with repositories that git itself makes.
package git_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) { mesh.Quick(&program, m.Run) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// git runs git in a folder and returns what it says.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git",
		append([]string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, args...)...)
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
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: %s, namespace: "+
		"shop}\nspec:\n  hosts: [%s.example]\n  resolution: DNS\n  ports: [{number: 80, name: http, protocol: HTTP}]\n", name, host)
}

// plane starts a control plane with the default set and an entry, branch, for config/git.
func plane(t *testing.T, entry string) *mesh.Plane {
	t.Helper()
	set, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plugins := filepath.Join(t.TempDir(), "plugins.yaml")
	write(t, plugins, string(set)+"  - {name: branch, kind: config, builtin: config/git, "+entry+"}\n")
	p := mesh.Start(t, program, t.TempDir(), "--plugins", plugins)
	p.Ready(t)
	return p
}

// hasCluster waits until a sidecar has, or has not, the cluster of a host HOST.example.
func hasCluster(t *testing.T, p *mesh.Plane, host string, there bool) {
	t.Helper()
	bootstrap := p.Bootstrap(t, "--ip", "127.0.0.5", "--namespace", "shop", "--interception", "NONE")
	wait.For(t, fmt.Sprintf("the proxy has %s: %v", host, there), func() error {
		names := strings.Join(mesh.Names(t, p.Fetch(t, bootstrap, "type.googleapis.com/envoy.config.cluster.v3.Cluster")), " ")
		if strings.Contains(names, "outbound|80||"+host+".example") != there {
			return fmt.Errorf("it has %s", names)
		}
		return nil
	})
}

// TestBranch: proxies follow a branch, `coxswain config` says which commit an object came with, a
// mistake keeps the one before, and a commit that takes all away is held.
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
	p := plane(t, "config: {repository: "+strconv.Quote(repository)+", interval: 1s}")
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
	has := func(host string) { t.Helper(); hasCluster(t, p, host, true) }
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

// TestDropped: resources of a repository that is away for longer than onLoss allows go, whatever
// proxies lose, and come back with it. A commit that can't be taken is no reason.
func TestDropped(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		need.Missing(t, "git")
	}
	repository := filepath.Join(t.TempDir(), "repository")
	if err := os.Mkdir(repository, 0o755); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(repository, name) }
	git(t, repository, "init", "-q", "-b", "main")
	for _, name := range []string{"a", "b"} {
		write(t, in(name+".yaml"), entry(name, name))
	}
	commit(t, repository)
	p := plane(t, "onLoss: {drop-after: 2s}, config: {repository: "+strconv.Quote(repository)+", interval: 1s, limits: {files: 2}}")
	for range 2 {
		hasCluster(t, p, "a", true)
		hasCluster(t, p, "b", true)
		p.Away(t, "branch")
		if err := os.Rename(repository, repository+"-away"); err != nil {
			t.Fatal(err)
		}
		p.Away(t, "branch", "does not exist", "its rows ")
		hasCluster(t, p, "a", false)
		hasCluster(t, p, "b", false)
		if err := os.Rename(repository+"-away", repository); err != nil {
			t.Fatal(err)
		}
	}
	hasCluster(t, p, "a", true)
	write(t, in("c.yaml"), entry("c", "c"))
	third := commit(t, repository)
	wait.For(t, "the commit is refused", func() error {
		if !strings.Contains(p.Log(), third+" has more files than limits.files") {
			return fmt.Errorf("%s", p.LastLines(5))
		}
		return nil
	})
	p.Away(t, "branch")
	git(t, repository, "rm", "-q", "a.yaml")
	commit(t, repository)
	hasCluster(t, p, "c", true)
	if n := strings.Count(p.Log(), "a plugin's rows are dropped"); n != 2 {
		t.Errorf("rows were dropped %d times, not twice", n)
	}
	if strings.Contains(p.Log(), "much would go at once") {
		t.Error("it was held")
	}
}
