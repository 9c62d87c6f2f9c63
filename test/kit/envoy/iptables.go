package envoy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// tables are the programs that rules of interception need.
var tables = []string{"iptables", "iptables-restore", "iptables-save", "ip6tables", "ip6tables-restore", "ip6tables-save"}

// Iptables finds the system's iptables or that of `make iptables`: files are its programs, by the
// paths at which a container expects them, env is what they need in their environment. Without one
// the test is skipped.
func Iptables(t testing.TB) (files map[string]string, env []string) {
	t.Helper()
	files = map[string]string{}
	if _, err := exec.LookPath("iptables-restore"); err == nil {
		for _, name := range tables {
			if path, err := exec.LookPath(name); err == nil {
				files["/usr/sbin/"+name] = path
			}
		}
		return files, nil
	}
	root := filepath.Join(Root(t), ".cache", "iptables")
	// What the program is follows from the name by which it is run.
	for _, name := range tables {
		kind, rest := "iptables", name[len("iptables"):]
		if name[:3] == "ip6" {
			kind, rest = "ip6tables", name[len("ip6tables"):]
		}
		path := filepath.Join(root, "usr", "sbin", kind+"-nft"+rest)
		if _, err := os.Stat(path); err != nil {
			need.Missing(t, "no %s here: `make iptables` installs one", name)
		}
		files["/usr/sbin/"+name] = path
	}
	libs, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*"))
	if err != nil || len(libs) != 1 {
		t.Fatalf("libraries of iptables: %v in %s: %v", libs, root, err)
	}
	return files, []string{"LD_LIBRARY_PATH=" + libs[0], "XTABLES_LIBDIR=" + filepath.Join(libs[0], "xtables")}
}
