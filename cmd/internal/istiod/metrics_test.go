package istiod

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

var updateMetrics = flag.Bool("update", false, "write docs/istiod-metrics.md")

const counted = `# TYPE coxswain_xds_streams gauge
coxswain_xds_streams{version="1.31"} 2
# TYPE coxswain_xds_responses_total counter
coxswain_xds_responses_total{type="cds"} 7
coxswain_xds_responses_total{type="type.googleapis.com/istio.networking.nds.v1.NameTable"} 1
# TYPE coxswain_xds_send_errors_total counter
coxswain_xds_send_errors_total{type="cds"} 1
coxswain_xds_send_errors_total{type="sds"} 1
# TYPE coxswain_xds_rejects_total counter
coxswain_xds_rejects_total{type="cds"} 3
coxswain_xds_rejects_total{type="lds"} 4
# TYPE coxswain_xds_streams_ended_total counter
coxswain_xds_streams_ended_total{code="OK"} 9
coxswain_xds_streams_ended_total{code="Internal"} 1
# TYPE coxswain_plugin_faults_total counter
coxswain_plugin_faults_total{plugin="istio"} 2
coxswain_plugin_faults_total{plugin="other"} 3
# TYPE coxswain_revision_seconds histogram
coxswain_revision_seconds_bucket{kind="endpoints",le="+Inf"} 8
coxswain_revision_seconds_sum{kind="endpoints"} 1
coxswain_revision_seconds_count{kind="endpoints"} 8
coxswain_revision_seconds_bucket{kind="full",le="1"} 1
coxswain_revision_seconds_bucket{kind="full",le="+Inf"} 2
coxswain_revision_seconds_sum{kind="full"} 3
coxswain_revision_seconds_count{kind="full"} 2
# TYPE coxswain_changed_tables_total counter
coxswain_changed_tables_total{table="endpoints"} 5
coxswain_changed_tables_total{table="workloads"} 1
coxswain_changed_tables_total{table="networking.istio.io/VirtualService"} 2
coxswain_changed_tables_total{table="core/Secret"} 1
# TYPE coxswain_xds_turns_total counter
coxswain_xds_turns_total{for="push"} 11
coxswain_xds_turns_total{for="request"} 6
# TYPE coxswain_changed_rows_total counter
coxswain_changed_rows_total{table="services",what="added"} 3
coxswain_changed_rows_total{table="services",what="changed"} 1
coxswain_changed_rows_total{table="services",what="removed"} 2
coxswain_changed_rows_total{table="endpoints",what="added"} 4
coxswain_changed_rows_total{table="networking.istio.io/VirtualService",what="removed"} 1
# TYPE coxswain_rows gauge
coxswain_rows{table="services"} 12
coxswain_rows{table="endpoints"} 40
# TYPE coxswain_info gauge
coxswain_info{version="v1"} 1
# TYPE plugin_validations_total counter
plugin_validations_total{plugin="a",outcome="passed",group="g",version="v1",resource="r"} 2
plugin_validations_total{plugin="b",outcome="passed",group="g",version="v1",resource="r"} 1
plugin_validations_total{plugin="a",outcome="failed",group="g",version="v1",resource="r",reason="invalid_resource"} 5
# TYPE plugin_injections_total counter
plugin_injections_total{plugin="injector",outcome="success"} 3
plugin_injections_total{plugin="injector",outcome="skip"} 4
# TYPE plugin_registrations_total counter
plugin_registrations_total{plugin="registration",of="create"} 6
plugin_registrations_total{plugin="registration",of="health"} 9
# TYPE plugin_registration_failures_total counter
plugin_registration_failures_total{plugin="registration"} 2
`

// TestMetrics: what the core counts is there under istiod's names, with its labels, and nothing is
// counted twice.
func TestMetrics(t *testing.T) {
	all := Metrics(parse(t, counted))
	var b strings.Builder
	for _, f := range all {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	text := b.String()
	for _, want := range []string{
		`pilot_xds{version="1.31"} 2`, `pilot_xds_pushes{type="cds"} 7`, `pilot_xds_pushes{type="cds_senderr"} 1`, `pilot_xds_pushes{type="nds"} 1`,
		`pilot_total_xds_rejects{type="lds"} 4`, `pilot_xds_cds_reject 3`, `pilot_total_xds_internal_errors 6`,
		`pilot_pushcontext_init_seconds_bucket{le="1"} 1`, `pilot_pushcontext_init_seconds_count 2`,
		`pilot_push_triggers{type="config"} 2`, `pilot_push_triggers{type="endpoint"} 6`,
		`pilot_push_triggers{type="proxyrequest"} 6`, `pilot_push_triggers{type="secret"} 1`,
		`pilot_inbound_updates{type="config"} 1`, `pilot_inbound_updates{type="eds"} 4`,
		`pilot_inbound_updates{type="svc"} 4`, `pilot_inbound_updates{type="svcdelete"} 2`,
		`pilot_k8s_cfg_events{type="VirtualService",event="delete"} 1`, `pilot_k8s_reg_events{type="Services",event="add"} 3`,
		`pilot_services 12`, `pilot_virt_services 0`, `istio_build{component="pilot",tag="v1"} 1`, `pilot_info{version="v1"} 1`,
		`galley_validation_passed{group="g",resource="r",version="v1"} 3`,
		`galley_validation_failed{group="g",reason="invalid_resource",resource="r",version="v1"} 5`,
		`sidecar_injection_requests_total 7`, `sidecar_injection_success_total 3`, `sidecar_injection_failure_total 0`, `citadel_server_csr_count 0`,
		`auto_registration_success_total 6`, `auto_registration_updates_total 0`, `auto_registration_errors_total 2`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, "sds_senderr") || strings.Contains(text, `pilot_push_triggers{type="push"}`) {
		t.Error("what istiod has no word for is counted")
	}
	// Names are there once, also where the core has counted nothing.
	for _, all := range [][]*dto.MetricFamily{all, Metrics(nil)} {
		seen := map[string]bool{}
		for _, f := range all {
			if len(f.Metric) == 0 {
				t.Errorf("%s has no series: it can't be written", f.GetName())
			}
			if seen[f.GetName()] {
				t.Errorf("%s is there twice", f.GetName())
			}
			seen[f.GetName()] = true
		}
	}
}

func parse(t *testing.T, text string) (all []*dto.MetricFamily) {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		all = append(all, f)
	}
	return all
}

// lacking are metrics of istiod's that are not here, and why.
var lacking = [][2]string{
	{
		"`pilot_conflict_*`, `pilot_vservice_dup_domain`, `pilot_destrule_subsets`, `pilot_duplicate_envoy_clusters`, `pilot_total_rejected_configs`",
		"what is wrong with resources is counted by `coxswain_config_faults`, and listed by `coxswain config` and `coxswain analyze`",
	},
	{"`pilot_no_ip`, `pilot_endpoint_not_ready`, `endpoint_no_pod`, `pilot_k8s_endpoints_*`, " +
		"`pilot_k8s_proxies_with_no_service_targets`, `pilot_eds_no_instances`, `pilot_dns_cluster_without_endpoints`",
		"nothing counts them; `coxswain explain` says of a cluster why it has no endpoints"},
	{"`pilot_xds_recv_max`, `pilot_sds_certificate_errors_total`, `pilot_jwks_resolver_*`, " +
		"`provider_lookup_cluster_failures`, `controller_sync_errors_total`, `istiod_managed_clusters`, " +
		"`istiod_remote_cluster_sync_status`, `remote_cluster_*`",
		"nothing counts them; what a plugin can't have is in its log and its state (`coxswain plugins`)"},
	{
		"`xds_cache_*`, `pilot_worker_queue_*`, `pilot_envoy_filter_status`, `webhook_patch_*`, `galley_validation_config_*`",
		"there is no such thing here",
	},
	{
		"`citadel_server_root_cert_expiry_*`, `citadel_server_cert_chain_expiry_*`",
		"the certificate itself says it: `/debug/rowz?table=trustbundles`",
	},
	{
		"`citadel_server_id_extraction_err_count`",
		"`citadel_server_authentication_failure_count` counts these, too: a caller whose certificate names nobody is not known",
	},
	{"`sidecar_injection_time_seconds`", "the API server counts it by webhook: `apiserver_admission_webhook_admission_duration_seconds`"},
	{"`grpc_server_*`", "`coxswain_xds_*` say it of xDS"},
	{"labels `node` and `err` of `pilot_xds_*_reject`", "they grow with proxies and their words; `coxswain proxies --refused` lists them"},
}

// TestMetricsOfIstiod: each metric that istiod has is here, or docs/istiod-metrics.md says what is
// instead. testdata/metrics.txt has their names.
func TestMetricsOfIstiod(t *testing.T) {
	here := map[string]bool{}
	for _, n := range renamed {
		here[n.name] = true
	}
	for _, s := range summed {
		here[s.name] = true
	}
	var instead []*regexp.Regexp
	for _, l := range lacking {
		if strings.HasPrefix(l[0], "labels ") {
			continue
		}
		for _, name := range regexp.MustCompile("`([a-z0-9_*]+)`").FindAllStringSubmatch(l[0], -1) {
			instead = append(instead, regexp.MustCompile("^"+strings.ReplaceAll(name[1], "*", ".*")+"$"))
		}
	}
	text, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(text)) {
		lacks := slices.ContainsFunc(instead, func(r *regexp.Regexp) bool { return r.MatchString(name) })
		if here[name] == lacks {
			t.Errorf("%s: here %v, and said to be lacking %v", name, here[name], lacks)
		}
	}
}

// TestMetricsAreDocumented: docs/istiod-metrics.md is as it is made of the code (-update makes it).
func TestMetricsAreDocumented(t *testing.T) {
	const file = "../../../docs/istiod-metrics.md"
	var rows []string
	for _, n := range renamed {
		rows = append(rows, fmt.Sprintf("| `%s` | `%s`%s | %s |", n.name, n.of, whereText(n.where), n.help))
	}
	for _, s := range summed {
		var of []string
		for _, p := range s.of {
			of = append(of, "`"+p.of+"`")
		}
		labels := ""
		if len(s.labels) > 0 {
			labels = " by " + strings.Join(s.labels, ", ")
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s%s | %s |", s.name, strings.Join(of, ", "), labels, s.help))
	}
	slices.Sort(rows)
	var b strings.Builder
	b.WriteString("# istiod's metrics\n\n<!-- Made by go test ./cmd/internal/istiod -run TestMetricsAreDocumented -update -->\n\n" +
		"`/metrics` has what the core counts ([metrics.md](metrics.md)) under istiod's names, too, with its labels, so that\n" +
		"dashboards and alerts which know istiod go on working. Nothing is counted twice: these are made of the others when\n" +
		"somebody asks.\n\n| metric | made of | what it says |\n|---|---|---|\n")
	b.WriteString(strings.Join(rows, "\n"))
	b.WriteString("\n\n## What is not there\n\n| of istiod's | instead |\n|---|---|\n")
	for _, l := range lacking {
		fmt.Fprintf(&b, "| %s | %s |\n", l[0], l[1])
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
		t.Error("docs/istiod-metrics.md is not as the code has it: run go test ./cmd/internal/istiod -run TestMetricsAreDocumented -update")
	}
	core, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("`(coxswain_[a-z_]+)`").FindAllStringSubmatch(strings.Join(rows, "\n"), -1) {
		if !strings.Contains(string(core), "| `"+name[1]+"` |") {
			t.Errorf("the core has no %s", name[1])
		}
	}
}

func whereText(where map[string]string) string {
	for name, value := range where {
		return fmt.Sprintf(" of %s %s", name, value)
	}
	return ""
}
