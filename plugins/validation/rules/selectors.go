package rules

import (
	"maps"
	"slices"
	"strings"

	api "istio.io/api/type/v1beta1"
)

// Codes about what a resource applies to.
const (
	badLabel      = "COX2006"
	emptySelector = "COX2007"
	badTarget     = "COX2008"
)

// isLabelName reports whether a text may be a label's name, or its value. Source: Kubernetes,
// labels and selectors.
func isLabelName(s string) bool { return len(s) <= maxLabel && isWord(s, "-_.", true) }

// labels checks keys and values of labels.
func (c *checker) labels(at path, of map[string]string) {
	for _, key := range sorted(of) {
		prefix, name, both := strings.Cut(key, "/")
		if !both {
			prefix, name = "", key
		}
		if !isLabelName(name) || both && (len(prefix) > 253 || !isWord(prefix, "-.", false)) {
			c.fail(badLabel, at.key(key), "invalid label key %s", quote(key)).hint("write such as app or example.com/app")
		}
		if value := of[key]; value != "" && !isLabelName(value) {
			c.fail(badLabel, at.key(key), "invalid label value %s", quote(value)).hint("use at most 63 letters, digits, '-', '_' and '.'")
		}
	}
}

// workloads checks a selector of Istio's networking API.
func (c *checker) workloads(at path, given bool, labels map[string]string) {
	if given && len(labels) == 0 {
		c.warn(emptySelector, at, "workload selector specified without labels: it applies to all workloads of the namespace").
			hint("leave the selector out, if that is meant")
	}
	c.selectorKeys(at.field("labels"), labels)
}

// selectorKeys checks what labels are looked for.
func (c *checker) selectorKeys(at path, labels map[string]string) {
	for _, key := range sorted(labels) {
		switch {
		case key == "":
			c.fail(badLabel, at.key(key), "empty key is not supported in selector")
		case strings.Contains(key, "*") || strings.Contains(labels[key], "*"):
			c.fail(badLabel, at.key(key), "wildcard is not supported in selector").hint("name the label's value, or leave the label out")
		}
	}
}

// selection checks the selector or the targets of a policy, which are in one of two fields.
func (c *checker) selection(at path, s *api.WorkloadSelector, target *api.PolicyTargetReference, targets []*api.PolicyTargetReference) {
	if s != nil && len(s.MatchLabels) == 0 {
		c.warn(emptySelector, at.field("selector"), "workload selector specified without labels: it applies to all workloads of the namespace").
			hint("leave the selector out, if that is meant")
	}
	c.selectorKeys(at.field("selector").field("matchLabels"), s.GetMatchLabels())
	if target != nil {
		c.target(at.field("targetRef"), target)
	}
	for i, t := range targets {
		c.target(at.field("targetRefs").index(i), t)
	}
}

// targetKinds are what policies can be attached to, GROUP/KIND.
var targetKinds = []string{
	"/Service", "core/Service", "gateway.networking.k8s.io/Gateway", "gateway.networking.k8s.io/GatewayClass",
	"networking.istio.io/ServiceEntry",
}

func (c *checker) target(at path, t *api.PolicyTargetReference) {
	if kind := t.GetGroup() + "/" + t.GetKind(); !slices.Contains(targetKinds, kind) {
		c.fail(badTarget, at, "targetRef must be to one of Service, Gateway, GatewayClass and ServiceEntry but was %s", kind).
			hint("a Gateway is of group gateway.networking.k8s.io; a Service's group is empty")
	}
	if t.GetName() == "" {
		c.fail(badTarget, at, "targetRef name must be set")
	}
	if t.GetNamespace() != "" && t.GetNamespace() != c.Namespace {
		c.fail(badTarget, at, "targetRef namespace must not be set: a policy is in the namespace of its target")
	}
}

// sorted returns a map's keys in order, so that findings have one.
func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
