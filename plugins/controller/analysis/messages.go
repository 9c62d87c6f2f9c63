package analysis

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// message is one of a status. Source: Istio API, analysis.v1alpha1.AnalysisMessageBase.
type message struct {
	Type struct {
		Code string `json:"code"`
	} `json:"type"`
	Level string `json:"level"`
	URL   string `json:"documentationUrl,omitempty"`
}

// levels are what severities are called there.
var levels = map[finding.Severity]string{finding.Error: "ERROR", finding.Warning: "WARNING", finding.Info: "INFO"}

// messageOf is what stands in a status of a finding. Of our own codes `coxswain explain-code` has
// the explanation.
func messageOf(f finding.Finding) (m message) {
	m.Type.Code, m.Level = f.Code, levels[f.Severity]
	if strings.HasPrefix(f.Code, "IST") {
		m.URL = "https://istio.io/latest/docs/reference/config/analysis/" + strings.ToLower(f.Code) + "/"
	}
	return m
}

// ref is an object.
type ref struct{ table, key string }

// analyze returns what is to be said of each object in a state: nothing of most. Errors are rows
// that can't be read.
func analyze(s *state.State, revision string) (want map[ref][]message, errs []error) {
	r := &analysis.Reader{}
	want = map[ref][]message{}
	if table := s.Table(state.Mesh); table != nil {
		for _, row := range table.All() {
			errs = appendError(errs, r.AddRow(state.Mesh, row))
		}
	}
	for _, table := range kinds.Tables() {
		for key, row := range s.Table(table).All() {
			errs = appendError(errs, r.AddRow(table, row))
			if isOurs(row, revision) {
				want[ref{table, key}] = nil
			}
		}
	}
	errs = append(errs, addServices(s, r)...)
	say := func(of *analysis.Resource, f finding.Finding) {
		at := ref{of.Group + "/" + of.Kind, kinds.Key(of.Namespace, of.Name)}
		list, ok := want[at]
		if m := messageOf(f); ok && !slices.Contains(list, m) {
			want[at] = append(list, m)
		}
	}
	for i := range r.Input.Resources {
		of := &r.Input.Resources[i]
		for _, f := range rules.Check(of.Resource) {
			if !r.Excuses(of, f) {
				say(of, f)
			}
		}
	}
	for _, found := range analysis.Analyze(r.Input) {
		say(found.Resource, found.Finding)
	}
	for at := range want {
		slices.SortFunc(want[at], func(a, b message) int {
			return cmp.Or(cmp.Compare(a.Type.Code, b.Type.Code), cmp.Compare(a.Level, b.Level))
		})
	}
	return want, errs
}

func appendError(errs []error, err error) []error {
	if err == nil {
		return errs
	}
	return append(errs, err)
}

// isOurs reports whether a control plane of a revision looks after an object. Source: Istio,
// "Canary upgrades".
func isOurs(row *sdk.Row, revision string) bool {
	of, given := row.Labels["istio.io/rev"]
	if revision == "" {
		revision = "default"
	}
	return !given || of == revision
}

// addServices tells a reader of the services and workloads of registries.
func addServices(s *state.State, r *analysis.Reader) (errs []error) {
	for key, row := range s.Table(state.Services).All() {
		service, err := sdk.ServiceOf(row)
		if err != nil {
			errs = append(errs, fmt.Errorf("services %s: %w", key, err))
			continue
		}
		r.AddService(service)
	}
	for key, row := range s.Table(state.Endpoints).All() {
		e, err := sdk.EndpointOf(row)
		if err != nil {
			errs = append(errs, fmt.Errorf("endpoints %s: %w", key, err))
			continue
		}
		namespace, _, _ := strings.Cut(key, "/")
		r.Input.Workloads = append(r.Input.Workloads, analysis.Workload{Namespace: namespace, Labels: e.Labels, Name: e.Address})
	}
	return errs
}

// object is one of the API server's, as far as its status is written: all else stays as it is.
type object struct {
	fields, status map[string]json.RawMessage
}

// field is the part of a status that is ours.
const field = "validationMessages"

// mostText is how large an object may be, in bytes: more than an API server keeps.
const mostText = 4 << 20

func read(text []byte) (*object, error) {
	if len(text) > mostText {
		return nil, fmt.Errorf("%d bytes are too many", len(text))
	}
	o := &object{}
	if err := json.Unmarshal(text, &o.fields); err != nil {
		return nil, err
	}
	if part := o.fields["status"]; len(part) > 0 {
		if err := json.Unmarshal(part, &o.status); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	return o, nil
}

// ref names the object.
func (o *object) ref(table string) (at ref, ok bool) {
	var m struct{ Namespace, Name string }
	err := json.Unmarshal(o.fields["metadata"], &m)
	return ref{table, kinds.Key(m.Namespace, m.Name)}, err == nil
}

// has returns the messages that a status has; ok is false where they are none.
func (o *object) has() (list []message, ok bool) {
	text := o.status[field]
	if len(text) == 0 || bytes.Equal(text, []byte("null")) {
		return nil, true
	}
	return list, json.Unmarshal(text, &list) == nil
}

// with returns the object's text with these messages in its status, and whether that changes it.
func (o *object) with(want []message) (text []byte, changed bool, err error) {
	if had, ok := o.has(); ok && slices.Equal(had, want) {
		return nil, false, nil
	}
	status := maps.Clone(o.status)
	if status == nil {
		status = map[string]json.RawMessage{}
	}
	if len(want) == 0 {
		delete(status, field)
	} else if status[field], err = json.Marshal(want); err != nil {
		return nil, false, err
	}
	all := maps.Clone(o.fields)
	if all["status"], err = json.Marshal(status); err != nil {
		return nil, false, err
	}
	text, err = json.Marshal(all)
	return text, true, err
}
