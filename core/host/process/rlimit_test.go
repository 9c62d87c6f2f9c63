package process_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/host/process"
)

// A plugin may dump no core and open so many files; what can't be set ends the start.
func TestLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("limits are set on Linux alone")
	}
	s := spec(t)
	s.OpenFiles = 100
	var joined int
	s.Join = func(pid int) error { joined = pid; return nil }
	p, link := start(t, s)
	greet(t, link)
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`Max core file size +0 +0 `, `Max open files +100 +100 `} {
		if !regexp.MustCompile(want).Match(limits) {
			t.Errorf("no %q in\n%s", want, limits)
		}
	}
	if joined != p.PID() {
		t.Errorf("process %d joined, %d runs", joined, p.PID())
	}
	s.Join = func(int) error { return errors.New("no room") }
	if _, err := process.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("got %v", err)
	}
}
