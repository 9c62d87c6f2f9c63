package rule

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
)

// TestLastGroupThatSelectsNobody: rules for a host that are exported differently count as one group
// each; of those that select nobody in particular the last one counts.
func TestLastGroupThatSelectsNobody(t *testing.T) {
	for name, c := range map[string]struct {
		list     []group
		selected string
		want     string
	}{
		"the last":                           {[]group{{Keys: "1"}, {Keys: "2"}, {Keys: "3"}}, "", "3"},
		"the first that selects":             {[]group{{Keys: "1"}, {Keys: "2", Selecting: true, Selector: "x"}, {Keys: "3"}}, "x", "2"},
		"not one that selects others":        {[]group{{Keys: "1"}, {Keys: "2", Selecting: true, Selector: "y"}}, "x", "1"},
		"a selector without labels selects":  {[]group{{Keys: "1"}, {Keys: "2", Selecting: true}, {Keys: "3"}}, "", "2"},
		"nothing where all select others":    {[]group{{Keys: "2", Selecting: true, Selector: "y"}}, "", ""},
		"the second of what the proxy meets": {[]group{{Keys: "2", Selecting: true, Selector: "y"}}, "x" + endpoint.SelectorSeparator + "y", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := choice(c.list, c.selected); got != c.want {
				t.Errorf("rules %q, want %q", got, c.want)
			}
		})
	}
}
