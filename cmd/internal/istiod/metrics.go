package istiod

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/state"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// Metrics returns what the core counts under the names and labels that istiod has for it
// (https://istio.io/latest/docs/reference/commands/pilot-discovery/#metrics), so that dashboards
// and alerts which know istiod go on working. It computes nothing but sums of what is there.
func Metrics(own []*dto.MetricFamily) []*dto.MetricFamily {
	of := make(families, len(own))
	for _, f := range own {
		of[f.GetName()] = f
	}
	var all []*dto.MetricFamily
	for _, n := range renamed {
		if f := of[n.of]; f != nil {
			all = append(all, n.family(f))
		}
	}
	for _, s := range summed {
		all = append(all, s.family(of))
	}
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return len(f.Metric) == 0 }) // which can't be written
}

// families are metrics by name.
type families map[string]*dto.MetricFamily

// renaming is a metric that is the core's under another name.
type renaming struct {
	name, of, help string
	// where are labels that a series must have to count, which are left out then.
	where map[string]string
	gauge bool // istiod calls it one, whatever it is
}

// renamed are the metrics that only have another name. Buckets are the core's.
var renamed = []renaming{
	{name: "pilot_xds", of: "coxswain_xds_streams", help: "Connected xDS streams by the proxies' version."},
	{name: "pilot_xds_config_size_bytes", of: "coxswain_xds_response_bytes", help: "Bytes of the resources of a response, by type."},
	{
		name: "pilot_xds_push_time", of: "coxswain_xds_response_seconds",
		help: "Seconds from when a response could be composed until gRPC had written it, by type.",
	},
	{name: "pilot_xds_send_time", of: "coxswain_xds_send_seconds", help: "Seconds until gRPC has written a response to the client's connection."},
	{name: "pilot_proxy_queue_time", of: "coxswain_xds_queue_seconds", help: "Seconds that a stream waited for its turn to be pushed to."},
	{
		name: "pilot_proxy_convergence_time", of: "coxswain_proxy_seconds",
		help: "Seconds from the first change until a proxy had answered all that it got of it.",
	},
	{name: "pilot_debounce_time", of: "coxswain_debounce_seconds", help: "Seconds from the first change to its commit."},
	{
		name: "pilot_pushcontext_init_seconds", of: "coxswain_revision_seconds", help: "Seconds from the commit of a full revision until it was served.",
		where: map[string]string{"kind": "full"},
	},
	{name: "pilot_total_xds_rejects", of: "coxswain_xds_rejects_total", help: "Responses that proxies refused, by type."},
	{name: "pilot_xds_cds_reject", of: "coxswain_xds_rejects_total", help: "Refused responses of cds.", where: map[string]string{"type": "cds"}, gauge: true},
	{name: "pilot_xds_eds_reject", of: "coxswain_xds_rejects_total", help: "Refused responses of eds.", where: map[string]string{"type": "eds"}, gauge: true},
	{name: "pilot_xds_lds_reject", of: "coxswain_xds_rejects_total", help: "Refused responses of lds.", where: map[string]string{"type": "lds"}, gauge: true},
	{name: "pilot_xds_rds_reject", of: "coxswain_xds_rejects_total", help: "Refused responses of rds.", where: map[string]string{"type": "rds"}, gauge: true},
	{name: "pilot_xds_expired_nonce", of: "coxswain_xds_stale_requests_total", help: "Requests that answer a response which isn't the last, by type."},
	{name: "pilot_xds_write_timeout", of: "coxswain_xds_write_timeouts_total", help: "Streams ended because the client took nothing."},
	{name: "pilot_info", of: "coxswain_info", help: "1, with the version that runs."},
	{name: "istiod_uptime_seconds", of: "coxswain_uptime_seconds", help: "For how long the control plane has run."},
}

func (n renaming) family(f *dto.MetricFamily) *dto.MetricFamily {
	out := &dto.MetricFamily{Name: proto.String(n.name), Help: proto.String(n.help), Type: f.Type}
	if n.gauge {
		out.Type = dto.MetricType_GAUGE.Enum()
	}
	for _, m := range f.Metric {
		if !has(m, n.where) {
			continue
		}
		x := &dto.Metric{Counter: m.Counter, Gauge: m.Gauge, Histogram: m.Histogram}
		if n.gauge {
			x.Counter, x.Gauge = nil, &dto.Gauge{Value: proto.Float64(m.GetCounter().GetValue())}
		}
		for _, l := range m.Label {
			if _, left := n.where[l.GetName()]; left || l.GetName() == "plugin" {
				continue
			}
			x.Label = append(x.Label, pair(l.GetName(), typeName(l.GetValue())))
		}
		out.Metric = append(out.Metric, x)
	}
	return out
}

// has reports whether a series has labels.
func has(m *dto.Metric, where map[string]string) bool {
	for name, value := range where {
		if label(m, name) != value {
			return false
		}
	}
	return true
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func pair(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: proto.String(name), Value: proto.String(value)}
}

// typeName is what istiod's metrics call a type for which the core has no word.
func typeName(text string) string {
	if text == nameType {
		return "nds"
	}
	return text
}

// sum is a metric that is a sum of series of the core's.
type sum struct {
	name, help string
	labels     []string
	gauge      bool
	// zero are the labels of a series that is there from the beginning; nil: there is none.
	zero []string
	of   []part
}

// part is a metric of the core's that is summed: to says which values the labels of the sum have
// for one of its series; nil: it does not count.
type part struct {
	of string
	to func(m *dto.Metric) []string
}

func (s sum) family(of families) *dto.MetricFamily {
	total := map[string]float64{}
	if s.zero != nil {
		total[strings.Join(s.zero, "\x00")] = 0
	}
	for _, p := range s.of {
		for _, m := range of[p.of].GetMetric() {
			if to := p.to(m); to != nil {
				total[strings.Join(to, "\x00")] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	keys := make([]string, 0, len(total))
	for k := range total {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := &dto.MetricFamily{Name: proto.String(s.name), Help: proto.String(s.help), Type: dto.MetricType_COUNTER.Enum()}
	if s.gauge {
		out.Type = dto.MetricType_GAUGE.Enum()
	}
	for _, k := range keys {
		x := &dto.Metric{}
		if s.gauge {
			x.Gauge = &dto.Gauge{Value: proto.Float64(total[k])}
		} else {
			x.Counter = &dto.Counter{Value: proto.Float64(total[k])}
		}
		values := strings.Split(k, "\x00")
		for i, name := range s.labels {
			x.Label = append(x.Label, pair(name, values[i]))
		}
		out.Metric = append(out.Metric, x)
	}
	return out
}

// one counts every series of a metric into a sum without labels, or one with these values.
func one(values ...string) func(*dto.Metric) []string {
	if values == nil {
		values = []string{}
	}
	return func(*dto.Metric) []string { return values }
}

// whose counts series with a label of one of some values into a sum without labels.
func whose(name string, values ...string) func(*dto.Metric) []string {
	return func(m *dto.Metric) []string {
		if slices.Contains(values, label(m, name)) {
			return []string{}
		}
		return nil
	}
}

// same counts series whose outcome is a word into a sum with some of their labels.
func same(outcome string, labels ...string) func(*dto.Metric) []string {
	return func(m *dto.Metric) []string {
		if label(m, "outcome") != outcome {
			return nil
		}
		values := make([]string, 0, len(labels))
		for _, l := range labels {
			values = append(values, label(m, l))
		}
		return values
	}
}

// What plugins report: validator, injector, ca and registration.
const (
	validations  = "plugin_validations_total"
	injections   = "plugin_injections_total"
	certificates = "plugin_certificate_requests_total"
	// registrations are counted by what was done (of).
	registrations      = "plugin_registrations_total"
	registrationErrors = "plugin_registration_failures_total"
)

// summed are the metrics that are made of the core's.
var summed = []sum{
	{
		name: "pilot_xds_pushes", help: "Responses handed to gRPC, by type, and those that could not be sent (TYPE_senderr).", labels: []string{"type"},
		of: []part{
			{"coxswain_xds_responses_total", func(m *dto.Metric) []string { return []string{typeName(label(m, "type"))} }},
			{"coxswain_xds_send_errors_total", sendError},
		},
	},
	{
		name: "pilot_total_xds_internal_errors",
		help: "Streams that ended because of a mistake of the control plane, and pieces of work of plugins that failed.",
		zero: []string{},
		of:   []part{{"coxswain_xds_streams_ended_total", whose("code", "Internal", "Unknown", "DataLoss")}, {"coxswain_plugin_faults_total", one()}},
	},
	{
		name: "pilot_push_triggers", help: "Commits by what changed, and answers to requests of proxies (proxyrequest).", labels: []string{"type"},
		of: []part{{"coxswain_changed_tables_total", trigger}, {"coxswain_xds_turns_total", request}},
	},
	{
		name: "pilot_inbound_updates", help: "Changes of rows that sources said, by what they are of: config, eds, svc, svcdelete.", labels: []string{"type"},
		of: []part{{"coxswain_changed_rows_total", inbound}},
	},
	{
		name: "pilot_k8s_cfg_events", help: "Changes of config objects, by kind and event, whatever source they are of.", labels: []string{"type", "event"},
		of: []part{{"coxswain_changed_rows_total", configEvent}},
	},
	{
		name:   "pilot_k8s_reg_events",
		help:   "Changes of what registries say, by what it is and event, whatever registry it is of.",
		labels: []string{"type", "event"},
		of:     []part{{"coxswain_changed_rows_total", registryEvent}},
	},
	{
		name: "pilot_services", help: "Services.", gauge: true, zero: []string{},
		of: []part{{"coxswain_rows", whose("table", state.Services)}},
	},
	{
		name: "pilot_virt_services", help: "VirtualServices.", gauge: true, zero: []string{},
		of: []part{{"coxswain_rows", whose("table", "networking.istio.io/VirtualService")}},
	},
	{
		name: "istio_build", help: "How many control planes of a version this is: 1.", gauge: true, labels: []string{"component", "tag"},
		of: []part{{"coxswain_info", func(m *dto.Metric) []string { return []string{"pilot", label(m, "version")} }}},
	},
	{
		name: "galley_validation_passed", help: "Objects that were judged, and are right.", labels: []string{"group", "resource", "version"},
		zero: []string{"", "", ""},
		of:   []part{{validations, same("passed", "group", "resource", "version")}},
	},
	{
		name: "galley_validation_failed", help: "Objects that were judged, and are refused.", labels: []string{"group", "reason", "resource", "version"},
		zero: []string{"", "", "", ""},
		of:   []part{{validations, same("failed", "group", "reason", "resource", "version")}},
	},
	{
		name: "galley_validation_http_error", help: "Requests of the API server for a verdict that could not be answered.", labels: []string{"status"},
		zero: []string{""},
		of: []part{{validations, func(m *dto.Metric) []string {
			if label(m, "outcome") != "error" {
				return nil
			}
			return []string{label(m, "reason")}
		}}},
	},
	{
		name: "sidecar_injection_requests_total", help: "Pods that were looked at.", zero: []string{},
		of: []part{{injections, one()}},
	},
	{
		name: "sidecar_injection_success_total", help: "Pods that got a proxy.", zero: []string{},
		of: []part{{injections, same("success")}},
	},
	{
		name: "sidecar_injection_failure_total", help: "Pods that should have got a proxy, and could not.", zero: []string{},
		of: []part{{injections, same("failure")}},
	},
	{
		name: "sidecar_injection_skip_total", help: "Pods that get no proxy.", zero: []string{},
		of: []part{{injections, same("skip")}},
	},
	{
		name: "citadel_server_csr_count", help: "Requests for certificates.", zero: []string{},
		of: []part{{certificates, one()}},
	},
	{
		name: "citadel_server_success_cert_issuance_count", help: "Certificates that were issued.", zero: []string{},
		of: []part{{certificates, same("issued")}},
	},
	{
		name: "citadel_server_authentication_failure_count", help: "Requests for certificates whose caller is not known, or may not.", zero: []string{},
		of: []part{{certificates, same("unauthenticated")}},
	},
	{
		name: "citadel_server_csr_parsing_err_count", help: "Requests for certificates that can't be read.", zero: []string{},
		of: []part{{certificates, same("unreadable")}},
	},
	{
		name: "citadel_server_csr_sign_err_count", help: "Requests for certificates that could not be signed.", zero: []string{},
		of: []part{{certificates, same("unsigned")}},
	},
	{
		name: "auto_registration_success_total", help: "WorkloadEntries that were made for agents.", zero: []string{},
		of: []part{{registrations, whose("of", "create")}},
	},
	{
		name: "auto_registration_updates_total", help: "Agents that were connected again, or to another replica.", zero: []string{},
		of: []part{{registrations, whose("of", "connect")}},
	},
	{
		name: "auto_registration_unregister_total", help: "WorkloadEntries whose agents have gone.", zero: []string{},
		of: []part{{registrations, whose("of", "disconnect")}},
	},
	{
		name: "auto_registration_deletes_total", help: "WorkloadEntries that were deleted, as their agents did not come back.", zero: []string{},
		of: []part{{registrations, whose("of", "delete")}},
	},
	{
		name: "auto_registration_errors_total", help: "Tries to make or change a WorkloadEntry that failed.", zero: []string{},
		of: []part{{registrationErrors, one()}},
	},
}

// sendError is what istiod calls a response that could not be sent.
func sendError(m *dto.Metric) []string {
	switch t := label(m, "type"); t {
	case "cds", "eds", "lds", "rds":
		return []string{t + "_senderr"}
	}
	return nil
}

// trigger is what istiod calls a push because of a change in a table.
func trigger(m *dto.Metric) []string {
	table := label(m, "table")
	switch table {
	case state.Services, state.ClusterServices:
		return []string{"service"}
	case state.Endpoints, state.Workloads:
		return []string{"endpoint"}
	case state.Namespaces:
		return []string{"namespace"}
	case state.Mesh:
		return []string{"global"}
	case state.Networks, state.NetworkGateways:
		return []string{"networks"}
	case "clusters":
		return []string{"cluster"}
	case "proxies", "nodes":
		return []string{"proxy"}
	}
	switch _, kind, config := strings.Cut(table, "/"); {
	case config && kind == "Secret":
		return []string{"secret"}
	case config:
		return []string{"config"}
	}
	return []string{"unknown"}
}

func request(m *dto.Metric) []string {
	if label(m, "for") != "request" {
		return nil
	}
	return []string{"proxyrequest"}
}

// inbound is what istiod calls an update of a table.
func inbound(m *dto.Metric) []string {
	table := label(m, "table")
	switch {
	case strings.Contains(table, "/"):
		return []string{"config"}
	case table == state.Endpoints:
		return []string{"eds"}
	case table == state.Services && label(m, "what") == "removed":
		return []string{"svcdelete"}
	case table == state.Services:
		return []string{"svc"}
	}
	return nil
}

// events are istiod's words for what became of rows.
var events = map[string]string{"added": "add", "changed": "update", "removed": "delete"}

func configEvent(m *dto.Metric) []string {
	_, kind, config := strings.Cut(label(m, "table"), "/")
	if !config {
		return nil
	}
	return []string{kind, events[label(m, "what")]}
}

// registryTypes are istiod's words for what registries say.
var registryTypes = map[string]string{state.Services: "Services", state.Endpoints: "EndpointSlice", state.Workloads: "Pods", "nodes": "Nodes"}

func registryEvent(m *dto.Metric) []string {
	name := registryTypes[label(m, "table")]
	if name == "" {
		return nil
	}
	return []string{name, events[label(m, "what")]}
}
