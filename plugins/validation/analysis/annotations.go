package analysis

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"istio.io/api/annotation"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
)

const (
	unknownAnnotation    = "IST0108"
	deprecatedAnnotation = "IST0135"
	misplacedAnnotation  = "IST0107"
	badAnnotation        = "IST0125"
)

// annotations finds annotations of Istio's that it doesn't know, or not any more. Source:
// istio.io/api/annotation.
func annotations(w *world) {
	known := map[string]*annotation.Instance{}
	for _, a := range annotation.AllResourceAnnotations() {
		known[a.Name] = a
	}
	for _, r := range w.resources {
		if r.ingress != nil {
			continue // of other controllers, too
		}
		for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
			if !writtenByMachines[name] {
				w.annotation(r, name, known[name])
			}
		}
	}
}

// writtenByMachines are annotations that istiod, or who injects, writes.
var writtenByMachines = map[string]bool{"sidecar.istio.io/status": true, "gateway.istio.io/controller-version": true, "istio.io/rev": true}

// annotation looks at one; a is nil for one that isn't known.
func (w *world) annotation(r *Resource, name string, a *annotation.Instance) {
	domain, _, _ := strings.Cut(name, "/")
	at := `metadata.annotations["` + name + `"]`
	if a == nil {
		if (domain == istioDomain || strings.HasSuffix(domain, "."+istioDomain)) && name != suppression && !strings.HasPrefix(domain, "internal.") {
			w.report(r, finding.Warnf(unknownAnnotation, at, "Unknown annotation: %s", name))
		}
		return
	}
	if _, labelled := r.Labels[injectLabel]; a.Deprecated && !(labelled && name == injectLabel) {
		w.report(r, finding.Finding{
			Code: deprecatedAnnotation, Severity: finding.Info, Field: at,
			Message: "Annotation \"" + name + "\" has been deprecated and may not work in future Istio versions.",
		})
	}
	if !annotated[r.Kind] {
		return
	}
	if !attaches(a, r.Kind) {
		w.report(r, finding.Warnf(misplacedAnnotation, at, "Misplaced annotation: %s has no effect on a %s", name, r.Kind))
		return
	}
	if check := annotationValues[name]; check != nil {
		if err := check(r.Annotations[name]); err != nil {
			w.report(r, finding.Warnf(badAnnotation, at, "Invalid annotation %s: %v", name, err))
		}
	}
}

// annotationValues are the checks of annotations' values. Source: Istio, "Resource Annotations".
var annotationValues = map[string]func(string) error{
	annotation.SidecarInterceptionMode.Name:                   oneOf("REDIRECT", "TPROXY", "NONE"),
	annotation.SidecarStatusPort.Name:                         isPort,
	annotation.SidecarStatusReadinessInitialDelaySeconds.Name: isCount,
	annotation.SidecarStatusReadinessPeriodSeconds.Name:       isCount,
	annotation.SidecarStatusReadinessFailureThreshold.Name:    isCount,
	annotation.SidecarTrafficIncludeOutboundIPRanges.Name:     orAll(isRange),
	annotation.SidecarTrafficExcludeOutboundIPRanges.Name:     each(isRange),
	annotation.SidecarTrafficIncludeInboundPorts.Name:         orAll(isPort),
	annotation.SidecarTrafficExcludeInboundPorts.Name:         each(isPort),
	annotation.SidecarTrafficExcludeOutboundPorts.Name:        each(isPort),
	annotation.SidecarTrafficExcludeInterfaces.Name:           each(isInterface),
	annotation.SidecarTrafficKubevirtInterfaces.Name:          each(isInterface),
	annotation.IoIstioRerouteVirtualInterfaces.Name:           each(isInterface),
	annotation.PrometheusMergeMetrics.Name:                    isBool,
	annotation.ProxyConfig.Name:                               isProxyConfig,
	annotation.SidecarProxyCPU.Name:                           isQuantity,
	annotation.SidecarProxyMemory.Name:                        isQuantity,
	annotation.SidecarProxyCPULimit.Name:                      isQuantity,
	annotation.SidecarProxyMemoryLimit.Name:                   isQuantity,
}

func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, s) {
			return fmt.Errorf("%q is none of %s", clipped(s), strings.Join(words, ", "))
		}
		return nil
	}
}

// each checks the parts of a list with commas, which may be empty.
func each(check func(string) error) func(string) error {
	return func(s string) error {
		if strings.TrimSpace(s) == "" {
			return nil
		}
		for part := range strings.SplitSeq(s, ",") {
			if err := check(strings.TrimSpace(part)); err != nil {
				return err
			}
		}
		return nil
	}
}

// orAll is each, or * for all.
func orAll(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "*" {
			return nil
		}
		return each(check)(s)
	}
}

func isPort(s string) error {
	if _, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16); err != nil {
		return fmt.Errorf("%q is no port", clipped(s))
	}
	return nil
}

func isCount(s string) error {
	if _, err := strconv.ParseUint(s, 10, 32); err != nil {
		return fmt.Errorf("%q is no number of 0 or more", clipped(s))
	}
	return nil
}

func isRange(s string) error {
	if _, err := netip.ParsePrefix(s); err != nil {
		return fmt.Errorf("%q is no range of addresses (CIDR)", clipped(s))
	}
	return nil
}

// interfaceName is the form of network interfaces' names on Linux, of at most 15 characters.
var interfaceName = regexp.MustCompile(`^[^\s/:]{1,15}$`)

func isInterface(s string) error {
	if !interfaceName.MatchString(s) {
		return fmt.Errorf("%q is no name of a network interface", clipped(s))
	}
	return nil
}

func isBool(s string) error {
	if _, err := strconv.ParseBool(s); err != nil {
		return fmt.Errorf("%q is neither true nor false", clipped(s))
	}
	return nil
}

func isQuantity(s string) error {
	if _, err := resource.ParseQuantity(s); err != nil {
		return fmt.Errorf("%q is no quantity, such as 100m or 128Mi", clipped(s))
	}
	return nil
}

func isProxyConfig(s string) error {
	if _, err := parseProxyConfig(s); err != nil {
		return fmt.Errorf("it is no ProxyConfig: %v", err)
	}
	root, _ := protoyaml.Chunk{Text: []byte(s)}.Parse()
	if root == nil {
		return nil
	}
	return rules.ProxyAnnotation(root)
}

// clipped is a text as messages have it: the beginning of a long one.
func clipped(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// attaches reports whether an annotation means something on an object of Kubernetes of this kind.
func attaches(a *annotation.Instance, kind string) bool {
	return slices.ContainsFunc(a.Resources, func(r annotation.ResourceTypes) bool { return r == annotation.Any || r.String() == kind })
}
