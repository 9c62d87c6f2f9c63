package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/levels"
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

// TestLogKeys: a line of the log as JSON has the keys that docs/operations.md promises.
func TestLogKeys(t *testing.T) {
	var out bytes.Buffer
	log, _ := logger(settings.Log{Format: "json", Level: "info"}, &out)
	log.With(levels.Attr, "core/xds").Warn("something has happened")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["time"])); err != nil {
		t.Error(err)
	}
	delete(line, "time")
	want := map[string]any{"level": "WARN", "msg": "something has happened", "area": "core/xds"}
	if !maps.Equal(line, want) {
		t.Errorf("%v, want %v", line, want)
	}
}
