package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestDiscoveryHelp: the help shows the flags that most people use, and how to see the others.
func TestDiscoveryHelp(t *testing.T) {
	said := func(args ...string) string {
		var out, complaint bytes.Buffer
		if code := run(t.Context(), append([]string{"discovery"}, args...), nil, strings.NewReader(""), &out, &complaint); code != 0 || complaint.Len() > 0 {
			t.Errorf("discovery %v: exit code %d: %s", args, code, complaint.String())
		}
		return out.String()
	}
	short, all := said("--help"), said("--help-all")
	if !strings.Contains(short, "--configDir ") || strings.Contains(short, "--maxNamesPerPeer ") || !strings.Contains(short, "--help-all") {
		t.Errorf("the help is\n%s", short)
	}
	if !strings.Contains(all, "--configDir ") || !strings.Contains(all, "--maxNamesPerPeer ") || !strings.Contains(all, "Usage:") {
		t.Errorf("all help is\n%s", all)
	}
	if said("--help", "--help-all") != all {
		t.Error("--help --help-all shows something else than --help-all")
	}
}
