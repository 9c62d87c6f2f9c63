package analysis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

const otherService = "IST0170"

// AddRemote takes the Services that a file, or an API server, of another cluster of the mesh has.
// They are compared with those of the same name here, and nothing else is said of that cluster.
func (r *Reader) AddRemote(cluster, file string, content []byte) {
	of := &Reader{}
	of.Add(file, content)
	for _, each := range of.Input.Resources {
		if each.service != nil {
			each.cluster = cluster
			r.Input.Remote = append(r.Input.Remote, each)
		}
	}
}

// clusters finds Services that clusters of one mesh have differently, though they are one service.
// Source: Istio, pkg/config/analysis/analyzers/multicluster, which compares ports on nodes, too:
// each cluster chooses its own of these.
func clusters(w *world) {
	byName := map[string][]*Resource{}
	var names []string
	for _, r := range slices.Concat(w.objectsOf(kindService), w.remote) {
		name := fullOf(r)
		if len(byName[name]) == 0 {
			names = append(names, name)
		}
		byName[name] = append(byName[name], r)
	}
	for _, name := range names {
		first := byName[name][0]
		var differ, where []string
		for _, other := range byName[name][1:] {
			if other.cluster == first.cluster {
				continue // one cluster has it twice, which is told otherwise
			}
			if in := first.service.differs(other.service); len(in) > 0 {
				differ, where = append(differ, in...), append(where, other.cluster)
			}
		}
		if len(differ) == 0 {
			continue
		}
		slices.Sort(differ)
		w.report(first, finding.Warnf(otherService, "spec", "in %s this service is otherwise than in %s: %s",
			strings.Join(where, ", "), cmp.Or(first.cluster, "this cluster"), strings.Join(slices.Compact(differ), ", ")).
			WithHint("make it the same in all clusters: it is one service, and which one's settings count isn't said"))
	}
}

// differs returns in what a Service is otherwise than another of its name.
func (s *serviceSpec) differs(o *serviceSpec) (in []string) {
	const headless = "None"
	if (s.ClusterIP == headless) != (o.ClusterIP == headless) {
		in = append(in, "whether it is headless")
	}
	if cmp.Or(s.Type, "ClusterIP") != cmp.Or(o.Type, "ClusterIP") {
		in = append(in, "its type")
	}
	if !slices.Equal(s.compared(), o.compared()) {
		in = append(in, "its ports")
	}
	return in
}

// compared are the ports, in order of their names, with what an API server adds to them.
func (s *serviceSpec) compared() (all []string) {
	for i := range s.Ports {
		p := &s.Ports[i]
		number := strconv.Itoa(int(p.Port))
		all = append(all, strings.Join([]string{p.Name, number, cmp.Or(p.Protocol, "TCP"), p.AppProtocol, cmp.Or(p.target(), number)}, " "))
	}
	slices.Sort(all)
	return all
}
