package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain"
)

// upgraded runs an upgrade check.
func upgraded(t *testing.T, environ []string, args ...string) (r upgradeReport, code int, complaint string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), append([]string{"upgrade", "check", "-o", "json"}, args...), environ, strings.NewReader(""), &out, &errOut)
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
	}
	return r, code, errOut.String()
}

// says reports whether a report has something of these words.
func (r *upgradeReport) says(means, of, text string) bool {
	return slices.ContainsFunc(r.Findings, func(o outcome) bool { return o.Means == means && o.Of == of && strings.Contains(o.Text, text) })
}

// inFolder writes files into a folder of the test's own, which it makes the current one.
func inFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestUpgradeRefused: all that would be refused is said at once: of the command line, the file of
// settings, plugins.yaml, though the settings are refused, too.
func TestUpgradeRefused(t *testing.T) {
	inFolder(t, map[string]string{
		"a/settings.yaml": "plugins: plugins.yaml\nholdMx: 3s\n",
		"a/plugins.yaml": "plugins:\n- {name: one, kind: config, builtin: config/file, config: {dir: ., drr: x}}\n- " +
			"{name: two, kind: config, builtin: config/fyle}\n",
	})
	r, code, complaint := upgraded(t, []string{"COXSWAIN_NOTHING=1"}, "--", "discovery", "--settings",
		"a/settings.yaml", "--pushThrotle=3", "--vklog=1", "surplus")
	if code != 1 || !strings.Contains(complaint, "would refuse") {
		t.Errorf("it ends with %d: %s", code, complaint)
	}
	for _, want := range []outcome{
		{isRefused, "command line", `unknown flag --pushThrotle, did you mean "pushThrottle"?`},
		{isRefused, "command line", "surplus"},
		{isPassed, "command line", "--vklog"},
		{isPassed, "environment", "COXSWAIN_NOTHING is no setting"},
		{isRefused, "settings", `settings.yaml:2:1: unknown setting "holdMx", did you mean "holdMax"?`},
		{isRefused, "plugins.yaml", "plugin one: config.drr: unknown"},
		{isRefused, "plugins.yaml", `there is no built-in plugin config/fyle, did you mean "config/file"?`},
	} {
		if !r.says(want.Means, want.Of, want.Text) {
			t.Errorf("it does not say %q, but %+v", want, r.Findings)
		}
	}
}

// TestUpgradeMesh: the mesh's settings and the injector's templates are judged where they are in
// files; a ConfigMap is named where no cluster is read.
func TestUpgradeMesh(t *testing.T) {
	inFolder(t, map[string]string{
		"mesh.yaml": "bogus: 1\nenableAutoMtls: maybe\n", "fine.yaml": "trustDomain: example.org\n",
		"injector.yaml": "policy: enabled\ntemplates: {x: 'bad {{'}\n",
		"plugins.yaml": "plugins:\n- {name: mesh, kind: config, builtin: config/mesh, config: {configMap: istio, networksConfig: absent.yaml}}\n" +
			"- {name: injector, kind: controller, builtin: controller/injector, " +
			"config: {from: files, nativeSidecars: 'true', configFile: injector.yaml}}\n" +
			"- {name: other, kind: controller, builtin: controller/injector, disabled: true, config: {configMap: nobody}}\n",
	})
	r, code, _ := upgraded(t, nil, "--", "--configDir=.", "--meshConfig=mesh.yaml")
	if code != 1 || !r.says(isRefused, "MeshConfig", "mesh.yaml:2:17: enableAutoMtls: expected true or false") ||
		!r.says(isPassed, "MeshConfig", "mesh.yaml:1:1: bogus: unknown field") {
		t.Errorf("%d: %+v", code, r.Findings)
	}
	if r, code, _ = upgraded(t, nil, "--", "--configDir=.", "--meshConfig=fine.yaml"); code != 0 || !r.says(isFine, "MeshConfig", "fine.yaml is taken") {
		t.Errorf("%d: %+v", code, r.Findings)
	}
	r, code, _ = upgraded(t, nil, "--", "--plugins=plugins.yaml")
	if code != 1 || !r.says(isRefused, "injector", "injector.yaml: config: templates: x: ") ||
		!r.says(isUnread, "MeshConfig", "ConfigMap istio of namespace istio-system: --live reads it") ||
		!r.says(isUnread, "MeshNetworks", "absent.yaml is not there") || r.says(isUnread, "injector", "nobody") {
		t.Errorf("%d: %+v", code, r.Findings)
	}
}

// TestUpgradeState: a state that can't be read is told of and stays as it is; a pin's file that
// another core has open can be read.
func TestUpgradeState(t *testing.T) {
	inFolder(t, map[string]string{"state/history.db": "junk", "state/first-seen": "coxswain first-seen 9\n", "empty/none": ""})
	r, code, _ := upgraded(t, nil, "--", "--configDir=.", "--stateDir", "state")
	if code != 0 || !r.says(isOtherwise, "state", "history.db can't be read") || !r.says(isOtherwise, "state", "first-seen: it does not begin with") {
		t.Errorf("%d: %+v", code, r.Findings)
	}
	if text, err := os.ReadFile("state/history.db"); err != nil || string(text) != "junk" {
		t.Errorf("the file is %q now: %v", text, err)
	}
	if r, code, _ := upgraded(t, nil, "--", "--configDir=.", "--stateDir", "empty"); code != 0 ||
		slices.ContainsFunc(r.Findings, func(o outcome) bool { return o.Of == "state" }) {
		t.Errorf("%d: %+v", code, r.Findings)
	}
}

// oldProgram is a script in a program's place, which says a version and a help.
func oldProgram(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "old")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUpgradeDefaults: a default that is another one is told of where nobody sets it, and versions
// since that of the program.
func TestUpgradeDefaults(t *testing.T) {
	t.Chdir(t.TempDir())
	var help bytes.Buffer
	if code := run(t.Context(), []string{"discovery", "--help-all"}, nil, strings.NewReader(""), &help, &help); code != 0 {
		t.Fatal(help.String())
	}
	if all := defaults(help.String()); all["registries"] != `"auto"` || all["configDir"] != "" || all["holdMax"] != "10s" || all["quarantine"] != "true" {
		t.Errorf("the defaults are %q", all)
	}
	same := oldProgram(t, "[ $1 = version ] && echo 'coxswain v0.1.0 (go)' || cat <<'END'\n"+help.String()+"\nEND\n")
	r, code, complaint := upgraded(t, nil, "--old", same, "--", "--configDir=.")
	if code != 0 || slices.ContainsFunc(r.Findings, func(o outcome) bool { return o.Means == isOtherwise }) {
		t.Errorf("of the same it says %d: %s %+v", code, complaint, r.Findings)
	}
	if r.Since != "v0.1.0" || len(r.Changes) == 0 || r.Changes[0].Text == "" {
		t.Errorf("since %s: %+v", r.Since, r.Changes)
	}
	other := oldProgram(t, "[ $1 = version ] && echo 'coxswain v0.1.0 (go)' || cat <<'END'\n"+
		strings.NewReplacer("(default 100ms)", "(default 7s)", "(default true)", "").Replace(help.String())+"\nEND\n")
	if r, _, _ := upgraded(t, nil, "--old", other); !r.says(isOtherwise, "settings", "debounceAfter: nobody sets it, and its default was 7s and is 100ms") {
		t.Errorf("it says %+v", r.Findings)
	}
	if r, _, _ := upgraded(t, []string{"COXSWAIN_DEBOUNCE_AFTER=3s"}, "--old", other); r.says(isOtherwise, "settings", "debounceAfter") {
		t.Errorf("of what the environment sets it says %+v", r.Findings)
	}
	if r, _, _ := upgraded(t, nil, "--old", other, "--", "--debounceAfter=3s"); r.says(isOtherwise, "settings", "debounceAfter") {
		t.Errorf("of what the command line sets it says %+v", r.Findings)
	}
	silent := oldProgram(t, "exit 0\n")
	if r, code, _ := upgraded(t, nil, "--old", silent, "--", "--configDir=."); code != 0 || !r.says(isUnread, "settings", "--old says no flags") {
		t.Errorf("of one that says nothing it says %d: %+v", code, r.Findings)
	}
	for _, text := range []string{"exit 3", "exec sleep 60"} {
		patience := oldPatience
		oldPatience /= 20
		if _, code, complaint := upgraded(t, nil, "--old", oldProgram(t, text)); code != 1 || !strings.Contains(complaint, "--old: ") {
			t.Errorf("of one that does %q it says %d: %s", text, code, complaint)
		}
		oldPatience = patience
	}
}

// TestUpgradeUsage: what can't be is said, and a line of an environment that makes no sense is not
// shown: it may be secret.
func TestUpgradeUsage(t *testing.T) {
	inFolder(t, map[string]string{"env": "# of the service\nCOXSWAIN_LOG_LEVEL=\"loud\"\n", "bad": "a-secret\n"})
	for want, args := range map[string][]string{
		"write -- before":  {"discovery"},
		"leave --env and":  {"--pid", fmt.Sprint(os.Getpid()), "--env", "env"},
		"no control plane": {"--pid", fmt.Sprint(os.Getpid())},
		"bad:1: want NAME": {"--env", "bad"},
		"no such file":     {"--env", "none"},
	} {
		if _, code, complaint := upgraded(t, nil, args...); code == 0 || !strings.Contains(complaint, want) || strings.Contains(complaint, "a-secret") {
			t.Errorf("%q: %d: %s", args, code, complaint)
		}
	}
	if r, code, _ := upgraded(t, nil, "--env", "env"); code != 1 || !r.says(isRefused, "settings", `"loud" is none of`) {
		t.Errorf("%d: %+v", code, r.Findings)
	}
}

// TestChangesSince: the sections above a version's are what came since.
func TestChangesSince(t *testing.T) {
	log := "# Changelog\n\n## Unreleased\n\n- c\n\n## 0.2.0\n\n- b\n\n## 0.1.0\n\n- a\n"
	for version, want := range map[string]string{
		"v0.2.0": "[{Unreleased - c}]", "0.1.0": "[{Unreleased - c} {0.2.0 - b}]", "v0.0.9": "[]", "": "[]",
	} {
		if got := fmt.Sprint(changesSince(log, version)); got != want {
			t.Errorf("since %s there are %s", version, got)
		}
	}
	if len(changesSince(coxswain.Changes(), "v0.1.0")) == 0 {
		t.Error("nothing changed since v0.1.0")
	}
}
