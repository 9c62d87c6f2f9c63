package tools

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// commands are what istioctl is asked, POD in the place of the name of the pod web, CART of cart's.
var commands = []string{
	"proxy-status", "proxy-status POD.shop", "version", "remote-clusters", "x internal-debug syncz", "x version",
	"proxy-config cluster POD.shop", "proxy-config listener POD.shop", "proxy-config route POD.shop",
	"proxy-config endpoint POD.shop",
	"proxy-config secret POD.shop", "proxy-config log POD.shop", "proxy-config bootstrap POD.shop",
	"proxy-config all POD.shop",
	"proxy-config ecds POD.shop", "proxy-config eds POD.shop", "proxy-config rootca-compare POD.shop CART.shop",
	"analyze -n shop", "analyze -A", "x describe pod POD.shop", "x describe service web.shop",
	"x describe service cart.shop",
	"x authz check POD.shop", "x check-inject -n shop POD", "tag list", "admin log", "x precheck", "x injector list",
}

// shown is what istioctl shows, by command.
func (w *world) shown() map[string]string {
	out := map[string]string{}
	for _, c := range commands {
		text, err := w.run("istioctl " + strings.NewReplacer("POD", w.pods["web"], "CART", w.pods["cart"]).Replace(c))
		if err != nil {
			text = "FAILS: " + err.Error()
		}
		out[c] = w.plain(text)
	}
	return out
}

// moving is what is never the same: ages, times, ports of this machine, keys, nonces.
var moving = []*regexp.Regexp{
	regexp.MustCompile(`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d UTC`),
	regexp.MustCompile(`(\d{4}-\S+/)?[0-9a-f]{9,}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
	regexp.MustCompile(`\b[0-9a-f]{8}-\d+-\d+\b`),
	regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.0-9]*(Z| ?[+-]\d{4}( UTC)?)?`),
	regexp.MustCompile(`\b[0-9a-f]{30,}\b`),
	regexp.MustCompile(`127\.0\.0\.1:\d{5}`),
	regexp.MustCompile(`control plane version: \S+`), // the one that was built with
}

// plain is a text without what is never the same, and which control plane it is about.
func (w *world) plain(text string) string {
	for of, name := range w.pods {
		text = strings.ReplaceAll(text, name, of+"-…")
	}
	for _, m := range moving {
		text = m.ReplaceAllString(text, "…")
	}
	text = strings.NewReplacer(w.dir, "DIR", w.address, "ADDRESS", w.name+": exit", "exit", "(devel)", "unknown",
		"istio-sidecar-injector", "INJECTOR", "coxswain-injector", "INJECTOR").Replace(text)
	return cut.ReplaceAllString(regexp.MustCompile(` +`).ReplaceAllString(text, " "), "$2")
}

// cut are the first of a virtual host's names, which are in another order, as docs/differences.md
// says.
var cut = regexp.MustCompile(`(\S+, )*\S+ (\+ \d+ more\.\.\.)`)

// synced are the entries of syncz without those of who asks for it, which is no proxy of the mesh.
func synced(t *testing.T, text string) string {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	all = slices.DeleteFunc(all, func(e map[string]any) bool { return e["cluster_id"] == nil })
	slices.SortFunc(all, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["proxy"]), fmt.Sprint(b["proxy"]))
	})
	out, err := json.MarshalIndent(all, "", " ")
	if err != nil || len(all) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	return string(out)
}

// otherwise are commands that show something else about Coxswain, as docs/differences.md says, and
// what they say then.
var otherwise = map[string]string{"admin log": "9876", "x injector list": "DOES NOT AUTOINJECT"}

// TestIstioctl: Istio's command shows of Coxswain, and of pods that it has injected, what it shows
// of istiod, by way of the API server alone; what differs docs/differences.md says.
func TestIstioctl(t *testing.T) {
	need.All(t)
	all, reports := map[string]map[string]string{}, map[string]map[string]string{}
	for _, name := range []string{istiod, coxswain} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, name, nil)
			all[name] = w.shown()
			reports[name] = w.report(t)
		})
	}
	if t.Failed() {
		return
	}
	for _, c := range commands {
		is, was := all[coxswain][c], all[istiod][c]
		t.Logf("istioctl %s, istiod:\n%s", c, was)
		if c == "x internal-debug syncz" {
			is, was = synced(t, is), synced(t, was)
		}
		if says := otherwise[c]; says != "" {
			if !strings.Contains(is, says) || strings.Contains(was, says) || !listed(t, "`istioctl "+c+"`") {
				t.Errorf("istioctl %s doesn't say %q, or docs/differences.md has no row about it: %s", c, says, is)
			}
			continue
		}
		if strings.HasPrefix(c, "proxy-config route") || strings.HasPrefix(c, "proxy-config all") {
			is, was = inOrder(is), inOrder(was) // Envoy dumps routes in no fixed order
		}
		if difference := cmp.Diff(lines(was), lines(is)); difference != "" {
			t.Errorf("istioctl %s: istiod (-), coxswain (+):\n%s", c, difference)
		}
	}
	if difference := cmp.Diff(slices.Sorted(maps.Keys(reports[istiod])),
		slices.Sorted(maps.Keys(reports[coxswain]))); difference != "" {
		t.Errorf("bug-report: istiod (-), coxswain (+):\n%s", difference)
	}
}

// listed reports whether docs/differences.md has a row about something.
func listed(t *testing.T, what string) bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "\n| "+what+" | ")
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// inOrder is a text with its lines in order, without what stands at their ends.
func inOrder(text string) string {
	all := lines(text)
	for i, l := range all {
		all[i] = strings.TrimSpace(l)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// report are the files of a bug report.
func (w *world) report(t *testing.T) map[string]string {
	t.Helper()
	t.Log(w.must(t, "istioctl bug-report --kubeconfig \"$KUBECONFIG\" --output-dir . --timeout 2m --skip-coredumps --skip-netstat"))
	file, err := os.Open(filepath.Join(w.dir, "bug-report.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		state := ""
		if len(text) == 0 {
			state = " (empty)"
		}
		out[w.plain(fmt.Sprint(h.Name, state))] = string(text)
	}
}
