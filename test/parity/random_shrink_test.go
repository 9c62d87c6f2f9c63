package parity

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// trials is how often a mesh is tried while it is shrunk.
const trials = 100

// shrink finds a smaller mesh in which a proxy sees the same sort of difference: objects go first,
// then fields of what is left, and of the proxy. It returns what differs there, nothing where the
// difference is not seen again. Without a proxy it is one of what is written.
func (j *judge) shrink(m randomMesh, p *proxy, sort string) (randomMesh, string) {
	left, report := trials, ""
	if p != nil {
		m.proxies = []proxy{*p}
	}
	differs := func(try randomMesh) bool {
		if left--; left < 0 {
			return false
		}
		for _, o := range try.objects {
			if o["kind"] != "ConfigMap" && !isOfGateways(o) && !reflect.DeepEqual(j.there[name(o)], o) && !j.valid(o) {
				return false
			}
		}
		if len(j.move(j.there, try.objects)) != len(try.objects) {
			return false
		}
		if p == nil {
			written := j.written(try.makes)
			report = written.text()
			return slices.Contains(written.sorts(), sort)
		}
		r := j.ask(try.proxies, still/3)
		if r.Error != "" || !slices.Contains(sortsOf(r.Proxies[p.Name].Report), sort) {
			return false
		}
		report = r.Proxies[p.Name].Report
		return true
	}
	if !differs(m) {
		return m, ""
	}
	// Objects, in ever smaller pieces. The settings of the mesh are first, and stay: what there
	// were would count without them.
	for size := (len(m.objects) + 1) / 2; size > 0; size /= 2 {
		for at := 1; at < len(m.objects); {
			try := m
			try.objects = append(slices.Clone(m.objects[:at]), m.objects[min(at+size, len(m.objects)):]...)
			if differs(try) {
				m = try
			} else {
				at += size
			}
		}
	}
	for i, o := range m.objects {
		part := "spec"
		put := func(v any) randomMesh {
			try := m
			try.objects = slices.Clone(m.objects)
			changed := copied(o).(map[string]any)
			changed[part] = v
			try.objects[i] = changed
			return try
		}
		if o["kind"] == "ConfigMap" {
			var settings any
			_ = yaml.Unmarshal([]byte(o["data"].(map[string]any)["mesh"].(string)), &settings)
			put = func(v any) randomMesh {
				text, _ := yaml.Marshal(v)
				try := m
				try.objects = slices.Clone(m.objects)
				try.objects[i] = settingsOf(string(text))
				return try
			}
			prune(settings, func(v any) bool {
				if try := put(v); differs(try) {
					m = try
					return true
				}
				return false
			})
			continue
		}
		prune(o[part], func(v any) bool {
			if try := put(v); differs(try) {
				m = try
				return true
			}
			return false
		})
	}
	if p == nil {
		return m, report
	}
	prune(p.Node["metadata"], func(v any) bool {
		try := m
		node := copied(p.Node).(map[string]any)
		node["metadata"] = v
		try.proxies = []proxy{{Name: p.Name, Node: node, NDS: p.NDS}}
		if !differs(try) {
			return false
		}
		m = try
		return true
	})
	return m, report
}

func copied(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}

// prune takes fields and elements of lists away, those that hold most first, and keeps it so
// wherever keep says so. keep is shown the whole.
func prune(root any, keep func(any) bool) {
	root = copied(root)
	var visit func(v any, replace func(any)) any
	// replace puts another value in the place of v in root.
	visit = func(v any, replace func(any)) any {
		switch x := v.(type) {
		case map[string]any:
			for _, k := range ordered(x) {
				was := x[k]
				delete(x, k)
				if keep(copied(root)) {
					continue
				}
				x[k] = was
				x[k] = visit(was, func(n any) { x[k] = n })
			}
		case []any:
			for i := 0; i < len(x); {
				shorter := append(slices.Clone(x[:i]), x[i+1:]...)
				replace(shorter)
				if len(shorter) > 0 && keep(copied(root)) {
					x = shorter
					continue
				}
				replace(x)
				i++
			}
			for i := range x {
				x[i] = visit(x[i], func(n any) { x[i] = n })
			}
			return x
		}
		return v
	}
	visit(root, func(n any) { root = n })
}

func (m randomMesh) String() string {
	var out strings.Builder
	for _, o := range m.objects {
		meta := o["metadata"].(map[string]any)
		shown := o["spec"]
		if o["kind"] == "ConfigMap" {
			var settings map[string]any
			_ = yaml.Unmarshal([]byte(o["data"].(map[string]any)["mesh"].(string)), &settings)
			shown = settings
		}
		b, _ := json.Marshal(shown)
		fmt.Fprintf(&out, "  %s %s/%s %s\n", o["kind"], meta["namespace"], meta["name"], b)
	}
	for _, p := range m.proxies {
		b, _ := json.Marshal(p.Node)
		fmt.Fprintf(&out, "  proxy %s\n", b)
	}
	return out.String()
}
