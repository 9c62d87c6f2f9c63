package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestLogLevels: levels change while a control plane runs, those of a plugin without a restart of
// it, and bad ones are refused with those that there are.
func TestLogLevels(t *testing.T) {
	t.Parallel()
	dir, settings := t.TempDir(), filepath.Join(t.TempDir(), "mesh.yaml")
	edits := 0
	edit := func() {
		edits++
		if err := os.WriteFile(settings, fmt.Appendf(nil, "rootNamespace: root-%d\n", edits), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit()
	plane := mesh.Start(t, program, dir, "--meshConfig", settings)
	plane.Ready(t)
	o := operator{t, plane.HTTP}
	o.says("log", 0, "default              info   -", "core/xds             info   -", "plugin/mesh          info   -")
	o.says("log set default=error plugin/mesh=info", 0, "default=error", "plugin/mesh=info")
	o.says("log -o json", 0, `"area": "core/xds",`, `"level": "error"`)
	pid := plane.Plugins(t)["mesh"].PID
	logged := func(words string) func() error {
		before := strings.Count(plane.Log(), words)
		edit()
		return func() error {
			if strings.Count(plane.Log(), words) == before {
				return errors.New("not yet")
			}
			return nil
		}
	}
	pushes := strings.Count(plane.Log(), "msg=pushed")
	wait.For(t, "the plugin says that it has read the settings", logged(`msg="settings are read"`))
	wait.For(t, "they are served", func() error {
		out, _ := o.runs("request", "GET", "/debug/mesh", "--addr", o.addr)
		if !strings.Contains(out, fmt.Sprintf("root-%d", edits)) {
			return errors.New(out)
		}
		return nil
	})
	if n := strings.Count(plane.Log(), "msg=pushed"); n != pushes {
		t.Errorf("%d pushes are logged at level error, %d before", n, pushes)
	}
	o.says("log set core/control=info", 0)
	wait.For(t, "a push is logged", logged("msg=pushed"))
	if got := plane.Plugins(t)["mesh"].PID; got != pid {
		t.Errorf("the plugin was process %d, and is %d", pid, got)
	}
	o.says("log set core/control=default plugin/mesh=default default=info", 0)
	o.says("log", 0, "core/control         info   -")
	o.says("log set core/none=info", 1, `there is no area "core/none"; there are default, core/admin, `)
	o.says("log set core/xds=loud", 1, `"loud" is no level: debug, info, warn and error are`)
	o.says("log set core/xds", 2, "is no AREA=LEVEL")
	o.says("log set", 2, "wants AREA=LEVEL")
}

// TestNothingIsAList: where there is nothing, lists are empty, in JSON and YAML.
func TestNothingIsAList(t *testing.T) {
	t.Parallel()
	plane := mesh.Start(t, program, t.TempDir())
	plane.Ready(t)
	o := operator{t, plane.HTTP}
	for _, args := range []string{
		"config", "views", "proxies", "proxy-status", "hold list", "pin", "history", "watch --after 0 --once", "log",
		"plugins", "plugins log", "plugins show files", "plugins top --once --interval 50ms",
	} {
		for _, format := range []string{"json", "yaml", "wide", "table"} {
			out, code := o.runs(append(strings.Fields(args), "-o", format)...)
			if code != 0 || strings.TrimSpace(out) == "" || format != "table" && strings.Contains(out, "null") {
				t.Errorf("coxswain %s -o %s: exit code %d: %s", args, format, code, out)
			}
		}
	}
}
