// Package trust tests what a plugin may do to the core that runs it: nothing.
package trust

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// program is the binary under test, as users have it: what the kernel refuses is no question of
// races. rogue is a plugin.
var program, rogue string

func TestMain(m *testing.M) {
	if runtime.GOOS != "linux" {
		fmt.Println("what keeps plugins away is Linux's")
		return
	}
	mesh.Plain(&program, func() int {
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

// A plugin can neither read the core nor use its admin socket, whether it runs as the same user or
// as root.
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

// show runs `coxswain plugins show` for a core of a home.
func show(t *testing.T, dir string, plugin string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "coxswain"), "plugins", "show", plugin)
	cmd.Env = []string{"XDG_RUNTIME_DIR=" + filepath.Join(dir, "run")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("coxswain plugins show: %v %s", err, out)
	}
	return string(out)
}

// What is in force is shown; where the kernel can't do it that is shown, and fails here: a test
// that skipped it would say that all is well.
func TestShown(t *testing.T) {
	dir := home(t, os.Getuid())
	as(t, os.Getuid(), dir, memory("")).Ready(t)
	out := show(t, dir, "reg")
	for _, want := range []string{"no_new_privs", "may not", "(Landlock)", "signal a process", "(seccomp)"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q; a kernel without it can't run this test: %s", want, out)
		}
	}
}

// memory is a set with a registry that has nothing; more are keys of its entry.
func memory(more string) string {
	return "plugins:\n  - {name: reg, kind: registry, builtin: registry/memory" + more + "}\n"
}

// pidOf waits until a plugin serves in a process other than before.
func pidOf(t *testing.T, plane *mesh.Plane, plugin string, before int) (pid int) {
	t.Helper()
	wait.For(t, plugin+" serves", func() error {
		p := plane.Plugins(t)[plugin]
		if p.State != "serving" || p.PID == before {
			return fmt.Errorf("%+v", p)
		}
		pid = p.PID
		return nil
	})
	return pid
}

// After an upgrade in place, and after the program was removed, built-ins are started from the
// program that runs.
func TestUpgradeInPlace(t *testing.T) {
	dir := home(t, os.Getuid())
	plane := as(t, os.Getuid(), dir, memory(""))
	plane.Ready(t)
	pid := pidOf(t, plane, "reg", 0)
	file := filepath.Join(dir, "coxswain")
	again := func(what string) {
		t.Helper()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wait.For(t, what, func() error {
			text, err := plane.Get("/debug/plugins")
			var list []struct {
				PID   int
				State string
			}
			if err == nil {
				err = json.Unmarshal([]byte(text), &list)
			}
			if err != nil || len(list) != 1 || list[0].State != "serving" || list[0].PID == pid {
				return fmt.Errorf("%s %v", text, err)
			}
			pid = list[0].PID
			return nil
		})
	}
	put(t, file+".new", "#!/bin/sh\necho I am another version >&2\nexit 1\n", 0o755)
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	again("it serves after an upgrade in place")
	cmd := exec.Command(file+".old", "plugins", "show", "reg")
	cmd.Env = []string{"XDG_RUNTIME_DIR=" + filepath.Join(dir, "run")}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "is another program than the one that runs") {
		t.Errorf("%s %v", out, err)
	}
	for _, name := range []string{file, file + ".old"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	again("it serves after the program was removed")
	if log := plane.Log(); strings.Contains(log, "another version") || strings.Count(log, "plugin failed") != 2 {
		t.Errorf("it was tried with something else:\n%s", log)
	}
}

// A script that is exchanged all the time never runs but as it was pinned.
func TestPinnedScript(t *testing.T) {
	dir := home(t, os.Getuid())
	script := filepath.Join(dir, "script.sh")
	const good = "echo the pinned one >&2; exec \"$1\""
	put(t, script, good, 0o644)
	stop, stopped := make(chan struct{}), make(chan struct{})
	plane := as(t, os.Getuid(), dir, fmt.Sprintf(`
plugins:
  - name: rogue
    kind: registry
    insecure: true
    process:
      command: /bin/sh
      args: [script.sh, ./rogue]
      env: {PATH: %q, TMPDIR: %q}
      files: [{path: script.sh, sha256: %x}]
    config: {report: %q}
`, os.Getenv("PATH"), filepath.Join(dir, "tmp"), sha256.Sum256([]byte(good)), filepath.Join(dir, "tmp", "report.json")))
	plane.Ready(t)
	defer func() { close(stop); <-stopped }()
	go func() { // not atomically: it must be right whatever it finds
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			text := good
			if n%2 == 0 {
				text = "echo another one >&2; exec \"$1\""
			}
			_ = os.WriteFile(script+".new", []byte(text), 0o644)
			_ = os.Rename(script+".new", script)
		}
	}()
	pid := 0
	for range 4 {
		wait.For(t, "the plugin runs", func() error {
			p := plane.Plugins(t)["rogue"]
			if p.State != "serving" || p.PID == pid {
				return fmt.Errorf("%+v", p)
			}
			pid = p.PID
			return nil
		})
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if log := plane.Log(); strings.Contains(log, "another one") || !strings.Contains(log, "the pinned one") {
		t.Errorf("something else ran:\n%s", plane.LastLines(100))
	}
}

// A plugin may run as another user, who sees nothing of the core's; where the core may not change
// users it says so.
func TestUser(t *testing.T) {
	if os.Getuid() != 0 {
		need.Missing(t, "only root can be somebody else: run as root")
	}
	t.Run("root", func(t *testing.T) {
		dir := home(t, 0)
		for _, open := range []string{".", "run", "tmp"} {
			if err := os.Chmod(filepath.Join(dir, open), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(dir, "run"), 0o711); err != nil {
			t.Fatal(err)
		}
		report := filepath.Join(dir, "tmp", "report.json")
		plane := as(t, 0, dir, fmt.Sprintf(`
plugins:
  - {name: reg, kind: registry, builtin: registry/memory, user: nobody}
  - name: rogue
    kind: registry
    insecure: true
    user: nobody
    process: {command: ./rogue, env: {PATH: %q, TMPDIR: %q}}
    config: {report: %q}
`, os.Getenv("PATH"), filepath.Join(dir, "tmp"), report))
		plane.Ready(t)
		for _, name := range []string{"reg", "rogue"} {
			info, err := os.Stat(fmt.Sprintf("/proc/%d", plane.Plugins(t)[name].PID))
			if err != nil || info.Sys().(*syscall.Stat_t).Uid != nobody {
				t.Errorf("%s: %+v %v", name, info, err)
			}
		}
		text, err := os.ReadFile(report)
		if err != nil || strings.Contains(string(text), `"done: `) {
			t.Errorf("%s %v", text, err)
		}
		if out := show(t, dir, "rogue"); !strings.Contains(out, "runs as: nobody") {
			t.Error(out)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		dir := home(t, nobody)
		plane := as(t, nobody, dir, memory(`, user: "0:0"`))
		if code := plane.Wait(t); code != 1 || !strings.Contains(plane.Log(), "CAP_SETUID") {
			t.Errorf("it ended with %d", code)
		}
	})
}

// A sandbox leaves a plugin the files that it names.
func TestSandbox(t *testing.T) {
	dir := home(t, os.Getuid())
	put(t, filepath.Join(dir, "allowed"), "allowed\n", 0o644)
	put(t, filepath.Join(dir, "forbidden"), "forbidden\n", 0o644)
	script := `cat allowed forbidden >&2; for f in tmp/in out; do echo a > $f && echo wrote $f >&2; done; exec ./rogue`
	plane := as(t, os.Getuid(), dir, fmt.Sprintf(`
plugins:
  - name: rogue
    kind: registry
    insecure: true
    process: {command: /bin/sh, args: [-c, %q], env: {PATH: "/usr/bin:/bin", TMPDIR: %q}}
    sandbox: {read: [allowed, rogue], write: [tmp]}
    config: {report: %q}
  - {name: reg, kind: registry, builtin: registry/memory, sandbox: {read: []}}
`, script, filepath.Join(dir, "tmp"), filepath.Join(dir, "tmp", "report.json")))
	plane.Ready(t)
	log := plane.Log()
	for text, want := range map[string]bool{"msg=allowed": true, "msg=forbidden": false, "wrote tmp/in": true, "wrote out": false} {
		if strings.Contains(log, text) != want {
			t.Errorf("%q: %v\n%s", text, !want, log)
		}
	}
}

// What the core knows to be secret is nowhere, though the plugin repeats it wherever it can.
func TestSecrets(t *testing.T) {
	dir := home(t, os.Getuid())
	put(t, filepath.Join(dir, "secret"), "from-a-file\n", 0o600)
	put(t, filepath.Join(dir, "echo.sh"), `echo "user $TOKEN of $PATH" >&2; echo $TOKEN | base64 >&2; exit 1`, 0o755)
	plane := as(t, os.Getuid(), dir, `
plugins:
  - {name: reg, kind: registry, builtin: registry/memory}
  - name: process
    kind: registry
    optional: true
    insecure: true
    process: {command: /bin/sh, args: [echo.sh], env: {TOKEN: very-secret-token, PATH: /usr/bin}}
  - name: refuses
    kind: registry
    optional: true
    builtin: registry/memory
    config: {"nothing": {file: secret}, "like": {env: DB_PASSWORD}}
`, "DB_PASSWORD=hunter2-and-more")
	plane.Ready(t)
	wait.For(t, "both have failed", func() error {
		all := plane.Plugins(t)
		if all["process"].LastError == "" || all["refuses"].LastError == "" {
			return fmt.Errorf("%+v", all)
		}
		return nil
	})
	page, err := plane.Get("/debug/plugins")
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"log": plane.Log(), "page": page, "show": show(t, dir, "process") + show(t, dir, "refuses")} {
		for _, secret := range []string{"very-secret-token", "dmVyeS1zZWNyZXQ", "hunter2-and-more", "from-a-file"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %s in\n%s", where, secret, text)
			}
		}
		if !strings.Contains(text, "[secret]") {
			t.Errorf("%s: nothing was masked: %s", where, text)
		}
	}
}
