package leaks

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/page"
)

// Pages are those of a control plane's HTTP port that it lists, metrics, profiles, and more: what
// each says, its refusals included.
func Pages(t testing.TB, address string, more ...string) map[string][]byte {
	t.Helper()
	paths := append([]string{"/metrics", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"}, more...)
	list, err := page.Get(address, "/debug/list")
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	var names []string
	if err := json.Unmarshal([]byte(list), &names); err != nil {
		t.Fatalf("/debug/list: %v: %s", err, list)
	}
	for _, name := range names {
		paths, listed = append(paths, "/debug/"+name), listed+1
	}
	if listed < 8 {
		t.Errorf("there are %q", paths)
	}
	said := map[string][]byte{}
	for _, path := range paths {
		text, err := page.Get(address, path)
		if err != nil {
			text = err.Error() // which may have it as well
		}
		said[path] = []byte(text)
	}
	return said
}

// Recording is what a plugin of a control plane and the core say to each other from the plugin's
// start on, for four seconds, or longer where something that is wanted was not said by then: the
// file, and what its lines hold.
func Recording(t testing.TB, program, address, plugin, wanted string) []byte {
	t.Helper()
	for during := 4 * time.Second; ; during *= 2 {
		file := filepath.Join(t.TempDir(), plugin)
		if out, err := exec.Command(program, "plugins", "record", plugin, file, "--for", during.String(), "--addr", address).CombinedOutput(); err != nil {
			t.Errorf("recording %s: %v: %s", plugin, err, out)
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for field := range bytes.SplitSeq(bytes.Clone(text), []byte{'"'}) {
			if frame, err := base64.StdEncoding.DecodeString(string(field)); err == nil {
				text = append(text, frame...)
			}
		}
		switch {
		case bytes.Contains(text, []byte(wanted)):
			return text
		case during > 30*time.Second:
			t.Errorf("the recording of %s, %d bytes, has no %q", plugin, len(text), wanted)
			return text
		}
	}
}

// Shown are the environment and the command line of a process, as /proc has them. It must not be
// one that may dump core.
func Shown(t testing.TB, pid int) []byte {
	t.Helper()
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		t.Error(err)
	}
	if _, rest, _ := strings.Cut(string(limits), "Max core file size"); len(strings.Fields(rest)) < 2 ||
		strings.Fields(rest)[0] != "0" || strings.Fields(rest)[1] != "0" {
		t.Errorf("process %d may dump core: %s", pid, limits)
	}
	if filter, err := os.ReadFile(fmt.Sprintf("/proc/%d/coredump_filter", pid)); err != nil || strings.Trim(string(filter), "0\n") != "" {
		t.Errorf("process %d may dump memory into a pipe: %s, %v", pid, filter, err)
	}
	var all []byte
	for _, file := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			t.Error(err)
		}
		all = append(all, text...)
	}
	return all
}
