package monitoring

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	testprogram "github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// tools are the folder with Prometheus and promtool.
func tools(t *testing.T) string {
	t.Helper()
	need.All(t)
	return testprogram.Built(t, "test/monitoring/prometheus", "prometheus", "prometheus", "promtool")
}

// prometheus is a Prometheus that scrapes a control plane each second.
type prometheus struct{ address string }

const scraping = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
- job_name: coxswain
  static_configs:
  - targets: [%q]
    labels: {app: istiod, pod: istiod-0}
`

func observe(t *testing.T, target string) *prometheus {
	t.Helper()
	dir, p := t.TempDir(), &prometheus{wait.Address(t)}
	rules, err := filepath.Abs(alerts)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, scraping, rules, target), 0o600); err != nil {
		t.Fatal(err)
	}
	testprogram.Start(t, exec.Command(filepath.Join(tools(t), "prometheus"), "--config.file", config,
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", p.address))
	return p
}

// ask returns how many series a query has as its answer.
func (p *prometheus) ask(query string) (int, error) {
	text, err := page.Get(p.address, "/api/v1/query?query="+url.QueryEscape(query))
	if err != nil {
		return 0, err
	}
	var answer struct {
		Data struct{ Result []any }
	}
	err = json.Unmarshal([]byte(text), &answer)
	return len(answer.Data.Result), err
}

// troubled are queries of our dashboard whose series come with trouble that is not made here:
// plugins that fail, and clients that are refused something.
var troubled = []string{"coxswain_plugin_restarts_total", "coxswain_xds_limited_total", "coxswain_xds_streams_ended_total"}

// TestPrometheus: a real Prometheus that scrapes a control plane has an answer to each query of
// Istio's dashboard about its control plane and of ours, and alerts are about to fire because of
// what is wrong.
func TestPrometheus(t *testing.T) {
	tools(t)
	w := start(t)
	p := observe(t, w.Monitoring)
	for _, query := range slices.Concat(istiods(t), ours(t).queries()) {
		query = strings.NewReplacer("$__rate_interval", "15s", "$job", ".*").Replace(query)
		may := slices.ContainsFunc(troubled, func(name string) bool { return strings.Contains(query, name) })
		wait.For(t, query, func() error {
			n, err := p.ask(query)
			if err == nil && n == 0 && !may {
				w.edit(t)
				err = fmt.Errorf("it has no answer")
			}
			return err
		})
	}
	for _, alert := range []string{"CoxswainProxiesRefuse", "CoxswainConfigFaults"} {
		wait.For(t, alert+" is pending", func() error {
			n, err := p.ask(fmt.Sprintf(`ALERTS{alertname=%q, alertstate="pending"}`, alert))
			if err == nil && n != 1 {
				err = fmt.Errorf("%d of them", n)
			}
			return err
		})
	}
	text, err := page.Get(p.address, "/api/v1/rules")
	if err != nil || strings.Contains(text, `"health":"err"`) || !strings.Contains(text, `"health":"ok"`) {
		t.Errorf("rules: %s %v", text, err)
	}
}

// TestRules: promtool takes the rules, and each alert fires in its unit test.
func TestRules(t *testing.T) {
	tool := filepath.Join(tools(t), "promtool")
	rules, err := filepath.Abs(alerts)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "check", "rules", "--lint=all", "--lint-fatal", rules).CombinedOutput(); err != nil {
		t.Errorf("check rules: %v\n%s", err, out)
	}
	text, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tests.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "RULES", rules)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("test rules: %v\n%s", err, out)
	}
}

// TestNames: promtool has nothing to say against the names of our metrics; istiod's are as they
// are.
func TestNames(t *testing.T) {
	tool := filepath.Join(tools(t), "promtool")
	w := start(t)
	_, text := w.scrape(t, `coxswain_xds_rejects_total{type="lds"} [1-9]`)
	cmd := exec.Command(tool, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 3 { // it grumbles
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "coxswain_xds_unknown_types ") {
			continue // it counts without _total: its name is promised (docs/stable.txt)
		}
		for _, own := range []string{"coxswain_", "plugin_"} {
			if strings.HasPrefix(line, own) {
				t.Error(strings.TrimSpace(line))
			}
		}
	}
}

// TestDashboardIsIstios: the queries that are tested are those of the dashboard in the module of
// Istio that the comparison with it runs (test/peer), but for those about containers and proxies.
func TestDashboardIsIstios(t *testing.T) {
	need.All(t)
	cmd := exec.Command("go", "mod", "download", "-json", "istio.io/istio")
	cmd.Dir = "../peer"
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "manifests/addons/dashboards/pilot-dashboard.gen.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Panels panels }
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(d.Panels.queries(), func(q string) bool {
		return strings.Contains(q, "container_") || strings.Contains(q, "envoy_")
	})
	if !slices.Equal(all, istiods(t)) {
		t.Errorf("the dashboard asks\n%s", strings.Join(all, "\n"))
	}
}
