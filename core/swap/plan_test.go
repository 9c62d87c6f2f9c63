package swap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// parse reads entries, a line each as `NAME KIND more`.
func parse(t *testing.T, lines ...string) *manifest.Set {
	t.Helper()
	text := "plugins:\n"
	for _, line := range lines {
		f := strings.SplitN(line+" ", " ", 3)
		text += "  - {name: " + f[0] + ", kind: " + f[1] + ", builtin: " + f[1] + "/x" + strings.TrimSpace(f[2]) + "}\n"
	}
	set, err := manifest.Parse("plugins.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// names are a set's entries, those that don't run in parentheses.
func names(set *manifest.Set) string {
	var all []string
	for _, e := range set.Plugins {
		if e.Disabled {
			all = append(all, "("+e.Name+")")
		} else {
			all = append(all, e.Name)
		}
	}
	return strings.Join(all, " ")
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to []string
		want     string
	}{
		{"the same", []string{"a registry", "g generator"}, []string{"g generator", "a registry"}, ""},
		{
			"readers come last and go first", []string{"x generator", "y registry", "z patch"},
			[]string{"g generator", "p patch", "r registry", "c config", "s authenticator"},
			"add s, add c, add r, add g, add p, remove z, remove x, remove y",
		},
		{"changed", []string{"a registry"}, []string{"a registry , config: {b: 1}"}, "swap a"},
		{"disabled", []string{"a registry"}, []string{"a registry , disabled: true"}, "remove a"},
		{"enabled", []string{"a registry , disabled: true"}, []string{"a registry"}, "add a"},
		{"changed while disabled", []string{"a registry , disabled: true"}, []string{"a registry , disabled: true, optional: true"}, ""},
		{"another kind", []string{"a registry", "b registry"}, []string{"a config", "c generator"}, "add c, remove a, remove b, add a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, s := range plan(parse(t, c.from...), parse(t, c.to...)) {
				got = append(got, s.what+" "+s.entry.Name)
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), c.want)
			}
		})
	}
}

// TestPlanOfSeveral: each step of a plan is compared, and none is taken.
func TestPlanOfSeveral(t *testing.T) {
	s := liveOf(t, "plugins: [{name: a, kind: registry, builtin: registry/a}, {name: b, kind: registry, builtin: registry/b}]", nil)
	steps, err := s.Plan(t.Context(), []byte("plugins: [{name: a, kind: registry, builtin: registry/c}, {name: b, kind: registry, builtin: registry/c}]"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range steps {
		got = append(got, c.What+" "+c.Plugin+" "+string(c.State))
	}
	if diff := cmp.Diff([]string{"swap a compared", "swap b compared"}, got); diff != "" {
		t.Error(diff)
	}
	if e, _ := s.running.now().Get("a"); describe(e) != "builtin registry/a" {
		t.Errorf("%s runs", describe(e))
	}
}

// While steps are done, what runs has the file's order, and what goes is behind it; what is in
// neither is forgotten in the end.
func TestMerged(t *testing.T) {
	running := parse(t, "a registry", "b registry , disabled: true", "g generator")
	file := parse(t, "new config", "g generator", "b registry")
	both := merged(running, file)
	if got := names(both); got != "(new) g (b) a" {
		t.Errorf("got %s", got)
	}
	gone, _ := both.Get("a")
	off := *gone
	off.Disabled = true
	if got := names(only(both.With(&off), file)); got != "(new) g (b)" {
		t.Errorf("got %s", got)
	}
	if at := places(both); at["g"] != 1 || at["a"] != 3 {
		t.Errorf("places %v", at)
	}
}
