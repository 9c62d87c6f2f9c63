package netns_test

import (
	"os"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/netns"
)

func TestMain(m *testing.M) {
	netns.Main()
	os.Exit(m.Run())
}

func TestOnlyLoopback(t *testing.T) {
	out, err := netns.Command(t, "/bin/cat", "/proc/self/net/route", "/proc/self/net/dev").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var interfaces []string
	for line := range strings.Lines(string(out)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			interfaces = append(interfaces, strings.TrimSpace(name))
		}
		if strings.HasPrefix(line, "eth") {
			t.Errorf("a route: %s", line)
		}
	}
	if len(interfaces) != 1 || interfaces[0] != "lo" {
		t.Errorf("interfaces %v, want lo alone", interfaces)
	}
}
