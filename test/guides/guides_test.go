package guides

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	netns.Main()
	mesh.Plain(&program, m.Run)
}

func TestGuides(t *testing.T) {
	guides, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(guides) == 0 {
		t.Fatal(err, guides)
	}
	for _, guide := range guides {
		t.Run(strings.TrimSuffix(filepath.Base(guide), ".md"), func(t *testing.T) {
			text, err := os.ReadFile(guide)
			if err != nil {
				t.Fatal(err)
			}
			script, wanted := compose(t, ownPorts(t, string(text)))
			out := run(t, script)
			for _, line := range wanted {
				if !strings.Contains(out, line) {
					t.Errorf("%q is not among what was printed:\n%s", line, out)
				}
			}
		})
	}
}

// ownPorts puts free ports in the place of those in a guide.
func ownPorts(t *testing.T, text string) string {
	own := map[string]string{}
	return regexp.MustCompile(`\b1947\d\b`).ReplaceAllStringFunc(text, func(port string) string {
		if own[port] == "" {
			own[port] = strconv.Itoa(wait.Port(t))
		}
		return own[port]
	})
}

// compose makes a script of a guide's blocks, in order: `sh` is run, a block with the name of a
// file becomes that file, and of `text output` each line must be printed.
func compose(t *testing.T, text string) (script string, wanted []string) {
	t.Helper()
	script = "set -e\n"
	parts := strings.Split(text, "```")
	for i := 1; i < len(parts); i += 2 {
		title, body, _ := strings.Cut(parts[i], "\n")
		language, file, _ := strings.Cut(title, " ")
		switch {
		case title == "sh":
			script += body
		case title == "text output":
			wanted = append(wanted, strings.Split(strings.TrimSpace(body), "\n")...)
		case file != "":
			script += "cat > " + file + " <<'END OF FILE'\n" + body + "END OF FILE\n"
		default:
			t.Fatalf("a block of %q that nothing is done with", language)
		}
	}
	return script, wanted
}

// run runs a script in a new folder and ends all that it started: it has a process group of its
// own.
func run(t *testing.T, script string) string {
	t.Helper()
	root, dir := envoy.Root(t), t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"coxswain": program, "envoy": envoy.Binary(t)} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "COXSWAIN_SDK="+root, "XDG_RUNTIME_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	out, readErr := os.ReadFile(output.Name())
	if err != nil || readErr != nil {
		t.Fatalf("%v %v\n%s", err, readErr, out)
	}
	ended(t, cmd.Process.Pid)
	return string(out)
}

// ended waits until a process group is gone.
func ended(t *testing.T, group int) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for syscall.Kill(-group, 0) == nil {
		if time.Now().After(deadline) {
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
		if time.Now().After(deadline.Add(15 * time.Second)) {
			t.Fatalf("process group %d is still there after SIGKILL", group)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
