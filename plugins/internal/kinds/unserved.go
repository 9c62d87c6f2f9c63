package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// unserved are objects that istiod, or what comes with it, heeds and nobody does here. What is
// served one day is taken out of this table.
var unserved = []struct {
	// groups, and kinds of them; none: all.
	groups, kinds []string
	// asked reports whether an object is meant; nil: each is. labels are selectors of those that
	// may be; none: all.
	asked  func(*object) bool
	labels []string
	why    string
}{
	{
		groups: []string{"gateway.networking.k8s.io", "gateway.networking.x-k8s.io", "inference.networking.k8s.io", "inference.networking.x-k8s.io"},
		why:    "of the Gateway API, this kind or version is not served; Gateways, HTTPRoutes, GRPCRoutes, TLSRoutes, TCPRoutes and UDPRoutes are",
	},
	{
		groups: []string{"extensions"}, kinds: []string{"Ingress"},
		why: "no API server has this version of Ingress any more; write networking.k8s.io/v1",
	},
	{
		groups: []string{"install.istio.io", "operator.istio.io"},
		why: "it is for Istio's own installation; settings of the control plane are flags and variables, and what it " +
			"says under meshConfig belongs into the file of --meshConfig",
	},
	{
		groups: []string{"rbac.istio.io", "authentication.istio.io", "config.istio.io", "policy.istio.io"},
		why:    "it is of an Istio before 1.6, and is not served by any since; write AuthorizationPolicy, PeerAuthentication and RequestAuthentication",
	},
	{
		groups: []string{""}, kinds: []string{"Namespace", "Pod", "Service"}, asked: func(o *object) bool { return Unserved(o.meta.labels) != "" },
		labels: []string{"istio.io/dataplane-mode=ambient", "istio.io/use-waypoint,istio.io/use-waypoint!=none"},
	},
}

// Unserved says what labels of a namespace, a pod or a service ask for that nobody does here; empty
// for nothing.
// Source: Istio, labels "istio.io/dataplane-mode" and "istio.io/use-waypoint".
func Unserved(labels map[string]string) string {
	switch {
	case labels["istio.io/dataplane-mode"] == "ambient":
		return "istio.io/dataplane-mode: ambient is not served; sidecars are"
	case labels["istio.io/use-waypoint"] != "" && labels["istio.io/use-waypoint"] != "none":
		return "istio.io/use-waypoint: waypoints are not served; sidecars are"
	}
	return ""
}

// tellUnserved notes that nobody serves an object of another API, if that was to be expected.
func (o *object) tellUnserved(group string) {
	for _, u := range unserved {
		if !slices.Contains(u.groups, group) || len(u.kinds) > 0 && !slices.Contains(u.kinds, o.kind) {
			continue
		}
		o.readMetadata()
		o.doc.Faults = nil
		if u.asked != nil && !u.asked(o) {
			return
		}
		o.doc.Namespace, o.doc.Name = o.meta.namespace, o.meta.name
		why := u.why
		if why == "" {
			why = Unserved(o.meta.labels)
		}
		o.fault(o.root, CodeUnserved, "", "%s", why)
		o.doc.Faults[0].Severity = finding.Warning
		return
	}
}

// InCluster is where objects that nobody serves may be in a cluster.
type InCluster struct {
	Group string
	// Kinds of the group; none: all that are not read.
	Kinds []string
	// Labels are label selectors of those that may be meant, one of which is enough; none: all may.
	Labels []string
}

// InClusters returns where objects that nobody serves may be in a cluster.
func InClusters() (all []InCluster) {
	for _, u := range unserved {
		for _, g := range u.groups {
			all = append(all, InCluster{g, u.kinds, u.labels})
		}
	}
	return all
}

// LeftOut says in a line which objects are left out, by what is said of each: how many, of which
// kinds; empty where none is.
func LeftOut(faults []Fault) string {
	count, n := map[string]int{}, 0
	for _, f := range faults {
		switch f.Code {
		case CodeUnserved:
			count[f.Kind] += max(1, f.Left)
			n += max(1, f.Left) - 1
		case CodeObject:
			if f.Severity != finding.Warning {
				continue
			}
			count["of no kind"]++
		default:
			continue
		}
		n++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[kind], kind))
	}
	if n == 0 {
		return ""
	}
	noun := "resources"
	if n == 1 {
		noun = "resource"
	}
	return fmt.Sprintf("%d %s left out: %s", n, noun, strings.Join(parts, ", "))
}
