package derive

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	experimental "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// ignoreAnnotation has policies left to other controllers. Source: Istio, "Resource Annotations".
const ignoreAnnotation = "istio.io/ignore-policy-attachment"

func ignored(row *pb.Row) bool { return strings.EqualFold(row.Annotations[ignoreAnnotation], "true") }

// target is what a policy is for: a host of a service or ServiceEntry.
type target struct {
	Name
	Host string
}

// Compare orders targets.
func (t target) Compare(o target) int {
	return cmp.Or(t.Name.Compare(o.Name), strings.Compare(t.Host, o.Host))
}

// setting is what a policy says of a target.
type setting struct {
	target
	// by is the policy.
	by  Name
	row *pb.Row
	// section is the name of the port that it is for; empty: all.
	section string
	tls     *networking.ClientTLSSettings
	// balancing: it is one of those that may say how clients balance.
	balancing bool
	budget    *networking.TrafficPolicy_RetryBudget
}

// judgedPolicy is what became of a policy.
type judgedPolicy struct {
	settings []setting
	judged   status.Policy
	// asked are the objects with roots that it names.
	asked map[Name]bool
}

// portsOf are the ports of a target; false: there is none.
func (w world) portsOf(n Name) (ports map[string]uint32, hosts []string, found bool) {
	ports = map[string]uint32{}
	if n.Kind == entryKind.Kind {
		e, ok := w.in.Entries.Get(w.c, n.Key())
		if !ok {
			return nil, nil, false
		}
		for _, p := range e.Spec.Ports {
			ports[p.Name] = p.Number
		}
		return ports, e.Spec.Hosts, true
	}
	s := w.service(n.Namespace, n.Name)
	if s == nil {
		return nil, nil, false
	}
	for _, p := range s.Ports {
		ports[p.Name] = p.Number
	}
	return ports, []string{s.Host}, true
}

// policy finds out what a policy says of each target.
func (w world) policy(p *Policy) *judgedPolicy {
	if p.TLS != nil {
		return w.tlsPolicy(p)
	}
	return w.trafficPolicy(p)
}

// tlsPolicy finds out what a BackendTLSPolicy says of each target.
func (w world) tlsPolicy(p *Policy) *judgedPolicy {
	out := &judgedPolicy{}
	tls := &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_SIMPLE, Sni: string(p.TLS.Validation.Hostname)}
	for _, n := range p.TLS.Validation.SubjectAltNames {
		switch n.Type {
		case gateway.HostnameSubjectAltNameType:
			tls.SubjectAltNames = append(tls.SubjectAltNames, string(n.Hostname))
		case gateway.URISubjectAltNameType:
			tls.SubjectAltNames = append(tls.SubjectAltNames, string(n.URI))
		}
	}
	ancestors := map[string]bool{}
	tls.CredentialName, out.judged.Roots = w.roots(&p.TLS.Validation, p.Namespace)
	for _, ref := range p.TLS.TargetRefs {
		section := string(or(ref.SectionName, ""))
		one := status.Target{Ref: gateway.ParentReference{Group: &ref.Group, Kind: &ref.Kind, Name: ref.Name, SectionName: ref.SectionName}}
		if ignored(p.Row) {
			one.Ignored = true
			out.judged.Targets = append(out.judged.Targets, one)
			continue
		}
		name, hosts, problem := w.policyTarget(kind{string(ref.Group), string(ref.Kind)}, p.Namespace, string(ref.Name), section)
		one.NotFound = problem
		if problem == "" {
			one.Conflicts = w.earlierPolicy(p, ref)
		}
		out.judged.Targets = append(out.judged.Targets, one)
		if problem == "" {
			w.ancestors(name, ancestors)
		}
		if problem != "" || one.Conflicts != "" {
			continue
		}
		for _, h := range hosts {
			out.settings = append(out.settings, setting{target: target{name, h}, by: p.Name, row: p.Row, section: section, tls: tls})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(ancestors)) {
		out.judged.Gateways = append(out.judged.Gateways, nameOf(gatewayKind.Kind, key).Name)
	}
	return out
}

// ancestors adds our Gateways whose routes name a backend, and those that are named and not there,
// as istiod has it.
func (w world) ancestors(backend Name, to map[string]bool) {
	for _, i := range w.leadingTo.Of(w.c, backend) {
		for _, ref := range i.Value.Parents() {
			if refer(ref.Group, ref.Kind, gatewayKind) != gatewayKind {
				continue
			}
			key := string(or(ref.Namespace, gateway.Namespace(i.Key.Namespace))) + "/" + string(ref.Name)
			g, there := w.in.Gateways.Get(w.c, key)
			ours := !there
			if there {
				_, ours = w.classOf(g.Spec.GatewayClassName)
			}
			if ours {
				to[key] = true
			}
		}
	}
}

// policyTarget finds what a policy is for; the text says why there is nothing.
func (w world) policyTarget(of kind, namespace, name, section string) (n Name, hosts []string, problem string) {
	if of != serviceKind && of != entryKind {
		return n, nil, fmt.Sprintf("unsupported kind %v", of.Kind)
	}
	n = Name{of.Kind, namespace, name}
	ports, hosts, found := w.portsOf(n)
	if !found {
		return n, nil, fmt.Sprintf("reference %v/%v (of kind %v) not found", namespace, name, of.Kind)
	}
	if _, has := ports[section]; section != "" && !has {
		return n, nil, fmt.Sprintf("sectionName %q does not exist in %s %s/%s", section, of.Kind, namespace, name)
	}
	return n, hosts, ""
}

// earlierPolicy is the name of an older policy for the same target; empty: there is none.
func (w world) earlierPolicy(p *Policy, ref gateway.LocalPolicyTargetReferenceWithSectionName) string {
	for _, i := range w.policiesOf.Of(w.c, p.Namespace+"/"+string(ref.Kind)+"/"+string(ref.Name)) {
		o := i.Value
		if o.Row.Key == p.Row.Key || cmp.Or(cmp.Compare(o.Row.Created, p.Row.Created), strings.Compare(o.Name.Name, p.Name.Name)) > 0 {
			continue
		}
		if slices.ContainsFunc(o.TLS.TargetRefs, func(t gateway.LocalPolicyTargetReferenceWithSectionName) bool {
			return t.LocalPolicyTargetReference == ref.LocalPolicyTargetReference && or(t.SectionName, "") == or(ref.SectionName, "") &&
				(t.SectionName == nil) == (ref.SectionName == nil)
		}) {
			return o.Name.Name
		}
	}
	return ""
}

// roots is the name of the roots by which a backend is judged; empty: those of the system. What
// can't be used is a name that nobody has: nothing must get through then.
func (w world) roots(v *gateway.BackendTLSPolicyValidation, namespace string) (string, status.Roots) {
	if v.WellKnownCACertificates != nil {
		if *v.WellKnownCACertificates != gateway.WellKnownCACertificatesSystem {
			return "", status.Roots{Unknown: string(*v.WellKnownCACertificates)}
		}
		return "", status.Roots{}
	}
	if len(v.CACertificateRefs) == 0 {
		return "", status.Roots{}
	}
	ref, out := v.CACertificateRefs[0], status.Roots{First: len(v.CACertificateRefs) > 1}
	switch of := (kind{string(ref.Group), string(ref.Kind)}); of {
	case configMapKind:
		has := w.credential(Name{secrets.ConfigMap, namespace, string(ref.Name)})
		switch {
		case has.Missing:
			out.Missing = fmt.Sprintf("reference %v/%v (of kind %v) not found", namespace, ref.Name, ref.Kind)
		case has.Roots != "":
			out.Invalid = has.Roots
		default:
			return configMapScheme + namespace + "/" + string(ref.Name), out
		}
	case secretKind, serviceKind, entryKind:
		out.Kind, out.Known = fmt.Sprintf("unsupported reference kind: %v", ref.Kind), true
	default:
		out.Kind = fmt.Sprintf("unsupported kind %v", ref.Kind)
	}
	return invalid, out
}

// Defaults of budgets for retries. Source: Gateway API, RetryConstraint.
const (
	budgetInterval = 10 * time.Second
	budgetLeast    = 10
)

// trafficPolicy finds out what an XBackendTrafficPolicy says of each target.
func (w world) trafficPolicy(p *Policy) *judgedPolicy {
	out := &judgedPolicy{judged: status.Policy{Sessions: p.Traffic.SessionPersistence != nil}}
	budget := budgetOf(p.Traffic.RetryConstraint)
	for _, ref := range p.Traffic.TargetRefs {
		one := status.Target{Ref: gateway.ParentReference{Group: &ref.Group, Kind: &ref.Kind, Name: ref.Name}, Ignored: ignored(p.Row)}
		if !one.Ignored {
			var name Name
			var hosts []string
			of := kind{string(ref.Group), string(ref.Kind)}
			if name, hosts, one.NotFound = w.policyTarget(of, p.Namespace, string(ref.Name), ""); one.NotFound == "" && of != serviceKind {
				one.NotFound = fmt.Sprintf("unsupported reference kind: %v", ref.Kind)
			}
			if one.NotFound == "" {
				out.settings = append(out.settings, setting{target: target{name, hosts[0]}, by: p.Name, row: p.Row, balancing: true, budget: budget})
			}
		}
		out.judged.Targets = append(out.judged.Targets, one)
	}
	return out
}

// budgetOf translates how many retries there may be; nil: it isn't said.
func budgetOf(c *experimental.RetryConstraint) *networking.TrafficPolicy_RetryBudget {
	if c == nil {
		return nil
	}
	out := &networking.TrafficPolicy_RetryBudget{BudgetInterval: durationpb.New(budgetInterval), MinRetryConcurrency: budgetLeast}
	if c.Budget != nil {
		if c.Budget.Percent != nil {
			out.Percent = wrapperspb.Double(float64(*c.Budget.Percent))
		}
		if d := span(c.Budget.Interval); d != 0 {
			out.BudgetInterval = durationpb.New(d)
		}
	}
	if c.MinRetryRate != nil && c.MinRetryRate.Count != nil {
		out.MinRetryConcurrency = uint32(max(*c.MinRetryRate.Count, 0))
	}
	return out
}

// DestinationRule is a derived one.
type DestinationRule struct {
	Namespace, Name string
	Annotations     map[string]string
	Spec            *networking.DestinationRule
	// From are the rows of the policies that it was made of, the oldest first.
	From []*pb.Row
}

// rule makes the DestinationRule of a target: what the oldest policy says of a matter counts.
func (w world) rule(t target, list []setting) *DestinationRule {
	slices.SortStableFunc(list, func(a, b setting) int { return older(a.row, b.row) })
	policy := &networking.TrafficPolicy{}
	out := &DestinationRule{Namespace: t.Namespace, Name: ruleName(t), Spec: &networking.DestinationRule{Host: t.Host, TrafficPolicy: policy}}
	var parents []string
	ports := map[string]*networking.TrafficPolicy_PortTrafficPolicy{}
	balanced := false
	for _, s := range list {
		switch {
		case s.tls != nil && s.section != "":
			if ports[s.section] == nil {
				ports[s.section] = &networking.TrafficPolicy_PortTrafficPolicy{Port: &networking.PortSelector{}, Tls: s.tls}
			}
		case s.tls != nil && policy.Tls != nil, s.balancing && balanced:
			continue
		case s.tls != nil:
			policy.Tls = s.tls
		}
		if s.balancing {
			balanced = true
			policy.LoadBalancer = &networking.LoadBalancerSettings{}
			policy.RetryBudget = s.budget
		}
		out.From = append(out.From, s.row)
		if parent := s.by.Kind + "/" + s.by.Namespace + "." + s.by.Name; !slices.Contains(parents, parent) {
			parents = append(parents, parent)
		}
	}
	numbers, _, _ := w.portsOf(t.Name)
	for _, section := range slices.Sorted(maps.Keys(ports)) {
		ports[section].Port.Number = numbers[section]
		policy.PortLevelSettings = append(policy.PortLevelSettings, ports[section])
	}
	out.Annotations = map[string]string{ParentsAnnotation: strings.Join(parents, ",")}
	return out
}

func ruleName(t target) string {
	if t.Kind == entryKind.Kind {
		return t.Name.Name + "~" + strings.ReplaceAll(t.Host, ".", "-") + "~" + autogenerated
	}
	return t.Name.Name + "~" + autogenerated
}
