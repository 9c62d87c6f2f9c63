package process_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// A plugin may dump no core and open so many files.
func TestLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Impossible(t, "limits are set on Linux alone")
	}
	s := spec(t)
	s.OpenFiles = 100
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
}
