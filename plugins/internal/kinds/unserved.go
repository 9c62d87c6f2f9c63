package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	typev1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
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
	// template leads to the pods that an object makes, which are found by themselves in a cluster:
	// there the object isn't looked for.
	template []string
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
	{groups: []string{"apps"}, kinds: []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, template: podTemplate},
	{groups: []string{""}, kinds: []string{"ReplicationController"}, template: podTemplate},
	{groups: []string{"batch"}, kinds: []string{"Job"}, template: podTemplate},
	{groups: []string{"batch"}, kinds: []string{"CronJob"}, template: slices.Concat([]string{"spec", "jobTemplate"}, podTemplate)},
}

// podTemplate is where the template of pods is in most objects that make some.
var podTemplate = []string{"spec", "template"}

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
		at, field, why := o.root, "", u.why
		switch {
		case u.template != nil:
			if at, field, why = o.unservedPods(u.template); why == "" {
				return
			}
		case why == "":
			why = Unserved(o.meta.labels)
		}
		o.unserved(CodeUnserved, at, field, why)
		return
	}
}

// unserved warns of what nobody serves.
func (o *object) unserved(code string, at *yaml.Node, field, why string) {
	o.fault(at, code, field, "%s", why)
	o.doc.Faults[len(o.doc.Faults)-1].Severity = finding.Warning
}

// unservedPods says what labels of the pods that an object makes ask for that nobody does here, and
// where; empty for nothing.
func (o *object) unservedPods(template []string) (at *yaml.Node, field, why string) {
	n, path := o.root, slices.Concat(template, []string{"metadata", "labels"})
	for _, key := range path {
		if n = protoyaml.Child(n, key); n == nil {
			return nil, "", ""
		}
	}
	pairs, _ := protoyaml.Pairs(n)
	labels := make(map[string]string, len(pairs))
	for _, p := range pairs {
		labels[p.Key.Value] = scalar(protoyaml.Resolve(p.Value))
	}
	return n, strings.Join(path, "."), Unserved(labels)
}

// tellUnservedParts notes what an object asks for that is read, and that nobody does here: by its
// labels, by what its policy is attached to.
func (o *object) tellUnservedParts(table string, spec proto.Message) {
	if table == ServiceEntry || table == WorkloadEntry {
		if why := Unserved(o.meta.labels); why != "" {
			o.unserved(CodeUnservedPart, o.root, "metadata.labels", why)
		}
	}
	refs, field := Targets(spec)
	unserved := 0
	for _, r := range refs {
		if UnservedTarget(r) != "" {
			unserved++
		}
	}
	for i, r := range refs {
		why := UnservedTarget(r)
		if why == "" {
			continue
		}
		at := TargetField(field, i)
		o.unserved(UnservedCode(unserved == len(refs)), protoyaml.Locate(o.root, at), at, why)
		return
	}
}

// IsUnserved reports whether a code says that nobody serves an object, or a part of it.
func IsUnserved(code string) bool { return code == CodeUnserved || code == CodeUnservedPart }

// UnservedCode is the code of what says that nobody serves an object, all of it or a part.
func UnservedCode(all bool) string {
	if all {
		return CodeUnserved
	}
	return CodeUnservedPart
}

// targetRefs is the field of a policy that says what it is attached to.
const targetRefs = "spec.targetRefs"

// Targets are what a policy is attached to, and the field that says so.
func Targets(spec proto.Message) (refs []*typev1.PolicyTargetReference, field string) {
	if p, ok := spec.(interface {
		GetTargetRefs() []*typev1.PolicyTargetReference
	}); ok && len(p.GetTargetRefs()) > 0 {
		return p.GetTargetRefs(), targetRefs
	}
	if p, ok := spec.(interface {
		GetTargetRef() *typev1.PolicyTargetReference
	}); ok && p.GetTargetRef() != nil {
		return []*typev1.PolicyTargetReference{p.GetTargetRef()}, "spec.targetRef"
	}
	return nil, ""
}

// TargetField is the place of one of Targets.
func TargetField(field string, i int) string {
	if field == targetRefs {
		return fmt.Sprintf("%s[%d]", field, i)
	}
	return field
}

// UnservedTarget says why a policy that is attached to something does nothing there; empty: it does
// something, or not all is known. Source: Istio, PolicyTargetReference.
func UnservedTarget(r *typev1.PolicyTargetReference) string {
	switch r.GetKind() {
	case "Service", "ServiceEntry", "GatewayClass":
		return fmt.Sprintf("a policy is attached to a %s for waypoints, which are not served; name a Gateway, or select sidecars", r.GetKind())
	}
	return ""
}

// UnservedClass says why nobody serves Gateways of a class; empty: that isn't known.
func UnservedClass(name string) string {
	switch name {
	case gatewayapi.WaypointClass:
		return "waypoints are not served; sidecars are"
	case gatewayapi.EastWestClass:
		return "gateways of ambient mode between networks are not served; those of sidecars are"
	}
	return ""
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
		if u.template != nil {
			continue
		}
		for _, g := range u.groups {
			all = append(all, InCluster{g, u.kinds, u.labels})
		}
	}
	return all
}

// LeftOut says in a line which objects are left out, and which in part, by what is said of each:
// how many, of which kinds; empty where none is.
func LeftOut(faults []Fault) string {
	whole, part := map[string]int{}, map[string]int{}
	for _, f := range faults {
		switch {
		case f.Code == CodeUnserved:
			whole[f.Kind] += max(1, f.Left)
		case f.Code == CodeUnservedPart:
			part[f.Kind]++
		case f.Code == CodeObject && f.Severity == finding.Warning:
			whole["of no kind"]++
		}
	}
	var said []string
	for _, of := range []struct {
		count map[string]int
		how   string
	}{{whole, "left out"}, {part, "left out in part"}} {
		if len(of.count) > 0 {
			said = append(said, counted(of.count, of.how))
		}
	}
	return strings.Join(said, "; ")
}

// counted says how many resources of which kinds are left out.
func counted(count map[string]int, how string) string {
	n, noun := 0, "resources"
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		n += count[kind]
		parts = append(parts, fmt.Sprintf("%d %s", count[kind], kind))
	}
	if n == 1 {
		noun = "resource"
	}
	return fmt.Sprintf("%d %s %s: %s", n, noun, how, strings.Join(parts, ", "))
}
