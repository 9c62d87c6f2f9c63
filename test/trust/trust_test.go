// Package trust tests what a plugin may do to the core that runs it: nothing.
package trust

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/mesh"
	"github.com/coxswain-mesh/coxswain/test/wait"
)

// program is the binary under test, rogue a plugin.
var program, rogue string

func TestMain(m *testing.M) {
	if runtime.GOOS != "linux" {
		fmt.Println("what keeps plugins away is Linux's")
		return
	}
	mesh.Main(&program, func() int {
		dir, err := os.MkdirTemp("", "trust")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		rogue = filepath.Join(dir, "rogue")
		if out, err := exec.Command("go", "build", "-o", rogue, "./rogue").CombinedOutput(); err != nil {
			fmt.Printf("building the rogue: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	})
}

// nobody is the user that a plugin or a core runs as that isn't root.
const nobody = 65534

// home is a directory in which everything of a core is, and which belongs to a user.
func home(t *testing.T, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ct")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, from := range map[string]string{"coxswain": program, "rogue": rogue} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name), string(text), 0o755)
	}
	for _, sub := range []string{"run", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".", "run", "tmp"} {
		if err := os.Chown(filepath.Join(dir, name), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func put(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// as starts the core of a home as a user.
func as(t *testing.T, uid int, dir, plugins string, env ...string) *mesh.Plane {
	t.Helper()
	file := filepath.Join(dir, "plugins.yaml")
	put(t, file, plugins, 0o644)
	return mesh.StartWith(t, func(cmd *exec.Cmd) {
		cmd.Dir = dir
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + filepath.Join(dir, "tmp"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run")}, env...)
		if uid != os.Getuid() {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		}
	}, filepath.Join(dir, "coxswain"), "", "--plugins", file)
}

// users that this test can be: itself and, as root, nobody.
func users() []int {
	if os.Getuid() == 0 {
		return []int{0, nobody}
	}
	return []int{os.Getuid()}
}

// A plugin can neither read the core nor use its admin socket, whether it runs as the same user or as root.
func TestAttempts(t *testing.T) {
	for _, uid := range users() {
		t.Run(fmt.Sprint("uid", uid), func(t *testing.T) {
			dir := home(t, uid)
			report := filepath.Join(dir, "tmp", "report.json")
			plane := as(t, uid, dir, fmt.Sprintf(`
plugins:
  - name: rogue
    kind: registry
    insecure: true
    process: {command: ./rogue, env: {PATH: %q, TMPDIR: %q}}
    config: {report: %q}
`, os.Getenv("PATH"), filepath.Join(dir, "tmp"), report), "DB_PASSWORD=hunter2")
			plane.Ready(t)
			did := map[string]string{}
			wait.For(t, "the rogue has tried all", func() error {
				text, err := os.ReadFile(report)
				if err != nil {
					return err
				}
				return json.Unmarshal(text, &did)
			})
			for what, came := range did {
				if !strings.HasPrefix(came, "no: ") {
					t.Errorf("%s: %s", what, came)
				}
			}
			if len(did) != 11 {
				t.Errorf("it tried %v", did)
			}
			t.Log(did)
			if !strings.Contains(plane.Log(), "a connection to the admin socket was refused") {
				t.Error("nothing says that the plugin asked")
			}
		})
	}
}
