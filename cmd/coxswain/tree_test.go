package main

import (
	"bytes"
	"encoding/pem"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// tree calls visit with all commands that do something.
func tree(t *testing.T, visit func(c *cobra.Command)) {
	t.Helper()
	p := &program{environ: []string{"COXSWAIN_ADDR=127.0.0.1:1", "XDG_RUNTIME_DIR=" + t.TempDir()}}
	var below func(c *cobra.Command)
	below = func(c *cobra.Command) {
		if c.Runnable() {
			visit(c)
		}
		for _, sub := range c.Commands() {
			below(sub)
		}
	}
	below(rootCommand(p, nil))
}

// asks reports whether a command asks a control plane that runs.
func asks(c *cobra.Command) bool { return c.Flags().Lookup("addr") != nil }

// arguments of commands that ask, so that they come as far as asking.
var questions = map[string]string{
	"analyze":          "--live",
	"bug-report":       "-o DIR/report.zip",
	"certificate":      "--addr 127.0.0.1:1 --roots DIR/root.pem --dir DIR",
	"config":           "",
	"diff":             "--from 1 --to 2",
	"explain":          "web.shop",
	"history":          "",
	"hold":             "",
	"hold apply":       "files",
	"hold drop":        "files",
	"hold list":        "",
	"hold show":        "files",
	"impact":           "Gateway/edge/public",
	"log":              "",
	"log set":          "default=warn",
	"pin":              "1",
	"plan":             "-f DIR",
	"plugins":          "",
	"plugins disable":  "files",
	"plugins enable":   "files",
	"plugins log":      "",
	"plugins plan":     "DIR/file",
	"plugins record":   "files DIR/recording",
	"plugins restart":  "files",
	"plugins rollback": "files",
	"plugins show":     "files",
	"plugins swap":     "files",
	"plugins top":      "--once",
	"proxies":          "",
	"proxy-status":     "",
	"record proxies":   "",
	"request":          "GET /metrics --addr 127.0.0.1:1",
	"rollout abort":    "",
	"rollout promote":  "",
	"rollout status":   "",
	"route":            "web.shop http://web.shop/",
	"test":             "../../examples/expectations --live",
	"top":              "--once",
	"ui":               "--addr 127.0.0.1:1",
	"unpin":            "",
	"views":            "",
	"wait":             "Gateway/edge/public",
	"watch":            "",
}

// TestAway: where no control plane runs, each command that asks one says so, and what to do, and
// ends with 1; a plan and a test with 2, as 1 is a difference there.
func TestAway(t *testing.T) {
	somebody := httptest.NewTLSServer(nil)
	somebody.Close()
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: somebody.Certificate().Raw})
	seen := map[string]bool{}
	tree(t, func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "coxswain ")
		if !asks(c) {
			return
		}
		seen[name] = true
		line, ok := questions[name]
		if !ok {
			t.Errorf("%s asks a control plane, and no row says with which arguments", name)
			return
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"file": "plugins: []\n", "root.pem": string(root)} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := append(strings.Fields(name), strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
			var out, complaint bytes.Buffer
			code := run(t.Context(), args, []string{"COXSWAIN_ADDR=127.0.0.1:1", "XDG_RUNTIME_DIR=" + dir}, strings.NewReader(""), &out, &complaint)
			want := 1
			if name == "plan" || name == "test" {
				want = 2
			}
			if code != want || out.Len() > 0 {
				t.Errorf("exit code %d, want %d: %s", code, want, out.String())
			}
			said := complaint.String()
			if !strings.Contains(said, "127.0.0.1:1") && !strings.Contains(said, dir) {
				t.Errorf("it is not said where none runs: %s", said)
			}
			if !strings.Contains(said, "--addr") && !strings.Contains(said, "--admin") {
				t.Errorf("it is not said what to do: %s", said)
			}
		})
	})
	for name := range questions {
		if !seen[name] {
			t.Errorf("there is no command %s that asks a control plane", name)
		}
	}
}

// otherwise are commands that ask and have no -o table|wide|json|yaml, and why.
var otherwise = map[string]string{
	"analyze":        "text, json or sarif, as validate: for what reads findings in CI",
	"bug-report":     "writes an archive",
	"certificate":    "writes a certificate and its key",
	"record proxies": "writes a file",
	"plugins record": "writes a recording",
	"request":        "prints what the control plane answers",
	"ui":             "prints an address",
}

// TestFormats: each command that asks prints what it hears in all formats, and refuses others
// before it asks.
func TestFormats(t *testing.T) {
	known := maps.Clone(otherwise)
	tree(t, func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "coxswain ")
		if !asks(c) {
			return
		}
		f := c.Flags().Lookup("output")
		has := f != nil && f.DefValue == "table" && strings.HasPrefix(f.Usage, "table, wide, json")
		if why := known[name]; why != "" {
			delete(known, name)
			if has {
				t.Errorf("%s has all formats", name)
			}
			return
		}
		if !has {
			t.Errorf("%s has no -o table, wide, json or yaml", name)
			return
		}
		var out, complaint bytes.Buffer
		args := append(strings.Fields(name), strings.Fields(strings.ReplaceAll(questions[name], "DIR", t.TempDir()))...)
		code := run(t.Context(), append(args, "-o", "xml"), []string{"COXSWAIN_ADDR=127.0.0.1:1"}, nil, &out, &complaint)
		if said := complaint.String(); code != 2 || !strings.Contains(said, "--output is table, wide, json") {
			t.Errorf("%s -o xml: exit code %d: %s", name, code, said)
		}
	})
	if len(known) > 0 {
		t.Errorf("there are no such commands: %v", slices.Sorted(maps.Keys(known)))
	}
}

// TestArgumentsComplete: the shell offers files for those arguments alone that are files.
func TestArgumentsComplete(t *testing.T) {
	files := map[string]string{ // by the arguments before
		"analyze": "", "test": "", "validate": "", "plugins plan": "", "plugins replay": "", "plugins test": "", "plugins pin": "", "plugins record": "files",
	}
	tree(t, func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "coxswain ")
		for _, before := range [][]string{nil, {"files"}, {"files", "b"}} {
			directive := cobra.ShellCompDirectiveDefault
			if c.ValidArgsFunction != nil {
				_, directive = c.ValidArgsFunction(c, before, "")
			}
			at, some := files[name]
			may := some && (c.ValidArgsFunction == nil || at == strings.Join(before, " "))
			if offers := directive&cobra.ShellCompDirectiveNoFileComp == 0; offers != may {
				t.Errorf("%s %s: files are offered: %v, want %v", name, strings.Join(before, " "), offers, may)
			}
		}
	})
}
