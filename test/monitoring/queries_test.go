package monitoring

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/yaml"
)

// Labels that Prometheus adds when it scrapes.
var scraped = []string{"app", "pod", "job", "instance"}

var (
	metricName = regexp.MustCompile(`\b(?:coxswain|pilot|istio|istiod|galley|sidecar|citadel|plugin|go|process)_[a-z0-9_]+\b`)
	labelNames = regexp.MustCompile(`by ?\(([^)]*)\)|([a-z_]+)=~?"`)
)

// TestQueries: each query of Istio's dashboard about its control plane, and of ours, asks for
// metrics that a control plane with one proxy has, and for labels that these have.
func TestQueries(t *testing.T) {
	w := start(t)
	w.scrape(t, `coxswain_xds_rejects_total{type="lds"} [1-9]`)
	w.edit(t)
	families, _ := w.scrape(t, `coxswain_proxy_seconds_count [1-9]`,
		`pilot_k8s_cfg_events{type="VirtualService",event="update"}`, `pilot_push_triggers{type="config"}`,
		`plugin_certificate_requests_total{outcome="issued",plugin="ca"} [1-9]`, `citadel_server_success_cert_issuance_count [1-9]`)
	docs := documented(t)
	for _, query := range slices.Concat(istiods(t), ours(t).queries()) {
		names := metricName.FindAllString(query, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for no metric", query)
		}
		var has []string
		for _, name := range names {
			labels, ok := labelsOf(families, docs, name)
			if !ok {
				t.Errorf("%s: there is no %s", query, name)
			}
			has = append(has, labels...)
		}
		for _, m := range labelNames.FindAllStringSubmatch(query, -1) {
			for _, label := range strings.FieldsFunc(m[1]+m[2], func(r rune) bool { return r == ',' || r == ' ' }) {
				if !slices.Contains(has, label) && !slices.Contains(scraped, label) {
					t.Errorf("%s asks for the label %s, which %s have not: %s", query, label, names, has)
				}
			}
		}
	}
}

// labelsOf are those of a metric as it was scraped or, if it has no series, as it is documented.
func labelsOf(families map[string]*dto.MetricFamily, docs map[string][]string, name string) (labels []string, ok bool) {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base := strings.TrimSuffix(name, suffix)
		if f := families[base]; base != name && f.GetType() == dto.MetricType_HISTOGRAM {
			name = base
			labels = append(labels, "le")
		}
	}
	f := families[name]
	if f == nil {
		documented, ok := docs[name]
		return documented, ok
	}
	for _, m := range f.Metric {
		for _, l := range m.Label {
			labels = append(labels, l.GetName())
		}
	}
	return labels, true
}

// TestAlertsHaveTests: each alert is in the unit tests once while all is well and once where it
// fires. make test-all runs them.
func TestAlertsHaveTests(t *testing.T) {
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	var tests struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string
				ExpAlerts []any `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	for file, into := range map[string]any{alerts: &rules, "testdata/alerts.yaml": &tests} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	silent, fires := map[string]bool{}, map[string]bool{}
	for _, one := range tests.Tests {
		for _, a := range one.AlertRuleTest {
			if len(a.ExpAlerts) > 0 {
				fires[a.Alertname] = true
			} else {
				silent[a.Alertname] = true
			}
		}
	}
	seen := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if seen++; !fires[r.Alert] || !silent[r.Alert] {
				t.Errorf("%s: a test in which it fires: %v, in which it is silent: %v", r.Alert, fires[r.Alert], silent[r.Alert])
			}
		}
	}
	if seen == 0 {
		t.Error("there are no alerts")
	}
}

// TestDashboard: each panel says what it shows.
func TestDashboard(t *testing.T) {
	all := ours(t)
	if len(all) == 0 {
		t.Fatal("no panels")
	}
	for _, p := range all {
		if p.Type != "row" && (p.Title == "" || p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %q: description %q, %d queries", p.Title, p.Description, len(p.Targets))
		}
	}
}
