package stage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLevels(t *testing.T) {
	serviceentry := Plugin{Name: "serviceentry", Derives: true, Publishes: []string{"services", "endpoints"}, Reads: []Read{{Table: "ServiceEntry"}}}
	ingress := Plugin{Name: "ingress", Derives: true, Publishes: []string{"Gateway", "VirtualService"}, Reads: []Read{{Table: "Ingress"}, {Table: "services"}}}
	files := Plugin{Name: "files", Publishes: []string{"ServiceEntry", "Ingress"}}
	istio := Plugin{Name: "istio", Reads: []Read{{Table: "services"}, {Table: "Gateway"}}}
	for name, tt := range map[string]struct {
		plugins []Plugin
		want    map[string]int
		err     string
	}{
		"sources and generators have no level": {[]Plugin{files, istio}, map[string]int{}, ""},
		"after what it reads":                  {[]Plugin{ingress, istio, files, serviceentry}, map[string]int{"serviceentry": 0, "ingress": 1}, ""},
		"a circle of two": {
			[]Plugin{
				{Name: "a", Derives: true, Reads: []Read{{Table: "y"}}, Publishes: []string{"x"}},
				{Name: "b", Derives: true, Reads: []Read{{Table: "x"}}, Publishes: []string{"y"}},
			},
			nil, "plugins derive from each other in a circle: a -> (x) -> b -> (y) -> a; let one of them read TABLE@sources",
		},
		"a circle beside what is none": {
			[]Plugin{
				{Name: "p", Derives: true, Publishes: []string{"t"}},
				{Name: "a", Derives: true, Reads: []Read{{Table: "t"}, {Table: "y"}}, Publishes: []string{"x"}},
				{Name: "b", Derives: true, Reads: []Read{{Table: "t"}, {Table: "x"}}, Publishes: []string{"y"}},
			},
			nil, "plugins derive from each other in a circle: a -> (x) -> b -> (y) -> a; let one of them read TABLE@sources",
		},
		"itself": {
			[]Plugin{{Name: "alias", Derives: true, Reads: []Read{{Table: "services"}}, Publishes: []string{"services"}}},
			nil, "plugins derive from each other in a circle: alias -> (services) -> alias; let one of them read TABLE@sources",
		},
		"itself, below": {
			[]Plugin{{Name: "alias", Derives: true, Reads: []Read{{Table: "services", Sources: true}}, Publishes: []string{"services"}}},
			map[string]int{"alias": 0}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Levels(tt.plugins)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.err {
				t.Errorf("error %q, want %q", text, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
