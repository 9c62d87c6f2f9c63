package main

import (
	"runtime/debug"
	"slices"
	"testing"
)

// TestTune: plugins collect hardly any garbage until they have read how much may gather, unless
// GOGC says it.
func TestTune(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	if got, _ := tune([]string{"GOGC=70"}); !slices.Equal(got, []string{"GOGC=70"}) {
		t.Errorf("with GOGC: %q", got)
	}
	child, started := tune([]string{"HOME=/"})
	started()
	if now := debug.SetGCPercent(1); now != garbage {
		t.Errorf("the core's is %d after its start", now)
	}
	if !slices.Contains(child, "GOGC=1000") || !slices.Contains(child, "HOME=/") {
		t.Errorf("without: %q", child)
	}
	tuned(child)
	if now := debug.SetGCPercent(1); now != garbageOfPlugins {
		t.Errorf("a plugin's is %d then", now)
	}
	tuned([]string{"HOME=/"})
	if now := debug.SetGCPercent(1); now != 1 {
		t.Errorf("it was changed to %d", now)
	}
}
