package serviceentry

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// aged derives from documents whose rows are as old as they come: the first one is the oldest.
func aged(t *testing.T, documents ...string) *plugintest.Harness {
	t.Helper()
	var all []plugintest.Rows
	for i, d := range documents {
		for _, rows := range read(t, d) {
			for _, r := range rows.Upserts {
				r.Created = int64(i + 1)
			}
			all = append(all, rows)
		}
	}
	h := plugintest.Start(t, Plugin(), nil)
	h.Commit(all...)
	return h
}

func only(t *testing.T, h *plugintest.Harness) *sdk.Service {
	t.Helper()
	rows := h.Rows(state.Services)
	if len(rows) != 1 {
		t.Fatalf("%d services", len(rows))
	}
	for _, r := range rows {
		s, err := sdk.ServiceOf(r)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return nil
}

func portsOf(s *sdk.Service) string {
	var out []string
	for _, p := range s.Ports {
		out = append(out, p.Name)
	}
	return strings.Join(out, " ")
}

// Of entries that say different things of one host the oldest counts, whatever their names.
func TestOldestEntryCounts(t *testing.T) {
	h := aged(t,
		se("z", `{hosts: [a.x], ports: [{name: old, number: 80}], resolution: DNS, location: MESH_EXTERNAL}`),
		se("a", `{hosts: [a.x], ports: [{name: young, number: 80}, {name: more, number: 81}], resolution: DNS, endpoints: [{address: b.x}]}`))
	s := only(t, h)
	if s.OriginKey != "default/z" || !s.External || portsOf(s) != "old more" {
		t.Errorf("%+v", s)
	}
}

// Entries whose services differ in more than ports and addresses stand apart: the younger adds
// nothing to the older one's.
func TestWhatKeepsEntriesApart(t *testing.T) {
	const base = `hosts: [a.x], ports: [{name: young, number: 81}]`
	for what, c := range map[string]struct{ old, young, want string }{
		"alike":            {"resolution: DNS, exportTo: [b, c]", "resolution: DNS, exportTo: [b, c]", "old young"},
		"other exports":    {"resolution: DNS, exportTo: ['.']", "resolution: DNS", "old"},
		"other resolution": {"resolution: DNS", "resolution: NONE", "old"},
		"other selector":   {"resolution: STATIC, workloadSelector: {labels: {app: a}}", "resolution: STATIC, workloadSelector: {labels: {app: b}}", "old"},
	} {
		t.Run(what, func(t *testing.T) {
			h := aged(t, se("z", "{hosts: [a.x], ports: [{name: old, number: 80}], "+c.old+"}"), se("a", "{"+base+", "+c.young+"}"))
			if got := portsOf(only(t, h)); got != c.want {
				t.Errorf("ports %s, want %s", got, c.want)
			}
		})
	}
}

// Unix sockets are for entries that list them: none selects a workload at one, whatever its
// resolution.
func TestSocketsAreNotSelected(t *testing.T) {
	for _, resolution := range []string{"STATIC", "DNS"} {
		h := start(t, se("a", `{hosts: [a.x], ports: [{name: h, number: 80}], resolution: `+resolution+`, workloadSelector: {labels: {app: a}}}`)+
			we("default", "socket", "{address: 'unix:///a', labels: {app: a}}")+we("default", "w", "{address: 10.1.0.1, labels: {app: a}}"))
		var got []string
		for k := range h.Rows(state.Endpoints) {
			got = append(got, k)
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"default/a.x/h/10.1.0.1:80"}, got); diff != "" {
			t.Errorf("%s: %s", resolution, diff)
		}
	}
}
