// Command rogue is a registry that tries what no plugin may: to read and end the core, and to
// change plugins. It writes what came of it into the file that its config names.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/coxswain-mesh/coxswain/sdk"
	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "ask" { // its grandchild
		os.Stdout.WriteString(ask(os.Args[2]))
		return
	}
	sdk.Serve(sdk.RegistryPlugin{
		Name: "rogue", Version: "1", Publishes: []string{"services", "endpoints"},
		New: sdk.WithRawConfig(nil, func(config []byte) (sdk.Registry, error) {
			var c struct{ Report string }
			if err := json.Unmarshal(config, &c); err != nil {
				return nil, err
			}
			return sdk.RegistryFunc(func(_ context.Context, out sdk.Publisher) error {
				if err := write(c.Report, attempts()); err != nil {
					return err
				}
				return sdk.NewList(out).Set(nil, nil)
			}), nil
		}),
	})
}

func write(file string, what map[string]string) error {
	text, err := json.MarshalIndent(what, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// attempts returns what came of each: an error, or something that begins with "done".
func attempts() map[string]string {
	core := os.Getppid()
	proc := fmt.Sprintf("/proc/%d/", core)
	did := map[string]string{
		"environ":           outcome(read(proc + "environ")),
		"memory":            outcome(open(proc + "mem")),
		"memory by threads": outcome(anyOf(proc+"task/*/mem", open)),
		"descriptors":       outcome(anyOf(proc+"fd/*", func(f string) (string, error) { return os.Readlink(f) })),
		"ptrace":            outcome("attached", syscall.PtraceAttach(core)),
		"readv":             outcome(readv(core)),
		"signal":            outcome("sent", syscall.Kill(core, 0)),
		"signal by threads": outcome(anyOf(proc+"task/*", func(f string) (string, error) {
			var tid int
			_, _ = fmt.Sscan(filepath.Base(f), &tid)
			return "sent", unix.Tgkill(core, tid, 0)
		})),
		"device node": outcome("made", unix.Mknod(filepath.Join(os.TempDir(), "rogue-node"), unix.S_IFCHR|0o600, 1<<8|3)),
	}
	socket := filepath.Join(filepath.Dir(os.Getenv("PLUGIN_UNIX_SOCKET_DIR")), "admin.sock")
	for range 1000 { // until the core listens
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	did["admin"] = ask(socket)
	did["admin by a daemon"] = askAside(socket)
	return did
}

func outcome(what string, err error) string {
	if err != nil {
		return "no: " + err.Error()
	}
	return "done: " + what
}

func read(file string) (string, error) {
	b, err := os.ReadFile(file)
	return strings.ReplaceAll(string(b), "\x00", " "), err
}

func open(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	return "open", f.Close()
}

// anyOf does something with each file until it succeeds.
func anyOf(pattern string, do func(string) (string, error)) (string, error) {
	err := os.ErrNotExist
	files, _ := filepath.Glob(pattern)
	for _, file := range files {
		var what string
		if what, err = do(file); err == nil {
			return what, nil
		}
	}
	return "", err
}

func readv(pid int) (string, error) {
	b := make([]byte, 8)
	local := []unix.Iovec{{Base: &b[0], Len: 8}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&os.Args)), Len: 8}}, 0)
	if err == unix.EFAULT { // it may look; there is nothing at this address
		err = nil
	}
	return "read", err
}

// ask asks the core for its plugins over its admin socket.
func ask(socket string) string {
	dial := func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }
	r, err := (&http.Client{Transport: &http.Transport{DialContext: dial}}).Get("http://core/plugins")
	if err != nil {
		return outcome("", err)
	}
	defer r.Body.Close()
	return outcome(r.Status, nil)
}

// askAside has a process ask that has left this one's session and parents, without its environment.
func askAside(socket string) string {
	to := filepath.Join(os.TempDir(), fmt.Sprintf("rogue-%d", os.Getpid()))
	defer os.Remove(to)
	script := fmt.Sprintf(`(env -i setsid sh -c 'sleep 0.3; exec /proc/%d/exe ask %s > %s.new; ' ; mv %s.new %s) &`, os.Getpid(), socket, to, to, to)
	if err := exec.Command("setsid", "sh", "-c", script).Run(); err != nil {
		return "could not try: " + err.Error()
	}
	for range 2000 {
		if text, err := os.ReadFile(to); err == nil {
			return string(text)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "could not try: no answer"
}
