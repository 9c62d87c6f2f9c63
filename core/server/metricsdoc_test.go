package server

import (
	"cmp"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

var updateMetrics = flag.Bool("update", false, "write docs/metrics.md")

// described is a metric as its Desc has it.
type described struct{ name, help, labels string }

var (
	descText = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", (?:unit: "[^"]*", )?constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)
	ours     = regexp.MustCompile(`\b(?:coxswain|pilot)_[a-z0-9_]+`)
)

// metricsOfAll are the core's, in order of their names, as New registers them.
func metricsOfAll(t *testing.T) (all []described) {
	t.Helper()
	r := prometheus.NewRegistry()
	newMetrics(r, nil)
	r.MustRegister(newHeldRows(nil), newLoads(nil), newAges(nil), newHiding(nil), newCrowds(nil), newRefusals(nil),
		newPinned(nil), newKept(nil), newStaged(nil), newSizes(nil, ""))
	if _, err := xds.New(xds.Config{Source: struct{ xds.Source }{}, Log: slog.New(slog.DiscardHandler), Registerer: r}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.New(admin.Config{Source: struct{ admin.Source }{}, Log: slog.New(slog.DiscardHandler), Registry: r}); err != nil {
		t.Fatal(err)
	}
	found := make(chan *prometheus.Desc)
	go func() { r.Describe(found); close(found) }()
	for d := range found {
		m := descText.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("%s is not understood", d)
		}
		all = append(all, described{m[1], strings.ReplaceAll(m[2], `\"`, `"`), strings.ReplaceAll(m[3], ",", ", ")})
	}
	slices.SortFunc(all, func(a, b described) int { return cmp.Compare(a.name, b.name) })
	return all
}

// TestMetricsAreDocumented: docs/metrics.md is as it is made of the code (-update makes it), and no
// file of the core has a metric that is not in it.
func TestMetricsAreDocumented(t *testing.T) {
	const file = "../../docs/metrics.md"
	var b strings.Builder
	b.WriteString("# Metrics\n\n<!-- Made by go test ./core/server -run TestMetricsAreDocumented -update -->\n\n" +
		"What `/metrics` of the monitoring port has of the core, beside those of Go's runtime and of the process (`go_…`,\n" +
		"`process_…`) and those that plugins report (`plugin_…`). The same under istiod's names is on\n" +
		"[istiod-metrics.md](istiod-metrics.md); [alerts.md](alerts.md) has rules about some of them.\n\n| metric | labels | what it says |\n|---|---|---|\n")
	for _, m := range metricsOfAll(t) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.name, m.labels, strings.ReplaceAll(m.help, "|", `\|`))
	}
	if *updateMetrics {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != b.String() {
		t.Error("docs/metrics.md is not as the code has it: run go test ./core/server -run TestMetricsAreDocumented -update")
	}
	for _, dir := range []string{".", "../xds", "../admin"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			source, err := os.ReadFile(dir + "/" + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`"((?:coxswain|pilot)_[a-z0-9_]+)"`).FindAllStringSubmatch(string(source), -1) {
				if prefix := strings.HasSuffix(name[1], "_"); !prefix && !strings.Contains(b.String(), "| `"+name[1]+"` |") {
					t.Errorf("%s/%s has %s, and docs/metrics.md has not", dir, e.Name(), name[1])
				}
			}
		}
	}
}

// TestAlerts: each alert asks for metrics and labels that there are, and has a section in
// docs/alerts.md, which has no others.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../../deploy/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, m := range metricsOfAll(t) {
		known[m.name] = m.labels
	}
	doc, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections, alerts []string
	for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(doc), -1) {
		sections = append(sections, m[1])
	}
	used := regexp.MustCompile(`by \((\w+)\)|\{(\w+)=|\$labels\.(\w+)`)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			alerts = append(alerts, r.Alert)
			names := ours.FindAllString(r.Expr, -1)
			if len(names) != 1 {
				t.Errorf("%s asks for %q; it is about one metric", r.Alert, names)
				continue
			}
			labels, ok := known[strings.TrimSuffix(names[0], "_bucket")]
			if !ok {
				t.Errorf("%s asks for %s, which there is not", r.Alert, names[0])
			}
			for _, m := range used.FindAllStringSubmatch(r.Expr+r.Annotations["summary"], -1) {
				if label := m[1] + m[2] + m[3]; label != "le" && !slices.Contains(strings.Split(labels, ", "), label) {
					t.Errorf("%s asks for label %s of %s, which has %s", r.Alert, label, names[0], labels)
				}
			}
			if !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) || r.Annotations["summary"] == "" ||
				r.Annotations["runbook_url"] != "docs/alerts.md#"+strings.ToLower(r.Alert) {
				t.Errorf("%s: labels %q, annotations %q", r.Alert, r.Labels, r.Annotations)
			}
		}
	}
	slices.Sort(alerts)
	slices.Sort(sections)
	if len(alerts) == 0 || !slices.Equal(alerts, sections) {
		t.Errorf("alerts %q, sections of docs/alerts.md %q", alerts, sections)
	}
}
