package analysis

import (
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
)

const oldDefinition = "IST0176"

// least are the versions of the Gateway API since which its definitions have the version of a kind
// that istiod reads. Source: Istio, pkg/config/schema/gatewayapi; Gateway API, release notes.
var least = map[string]string{
	"grpcroutes.gateway.networking.k8s.io": "1.1.0", "backendtlspolicies.gateway.networking.k8s.io": "1.4.0",
	"tlsroutes.gateway.networking.k8s.io": "1.5.0", "tcproutes.gateway.networking.k8s.io": "1.6.0",
}

// definitions finds definitions of kinds that are gone, and of the Gateway API that are too old.
func definitions(w *world) {
	for _, r := range w.objectsOf(kindDefinition) {
		switch r.definition.Names.Kind {
		case "ClusterRbacConfig", "RbacConfig", "ServiceRole", "ServiceRoleBinding":
			if r.definition.Group == "rbac.istio.io" {
				w.report(r, finding.Warnf(rules.Deprecated, "spec.names.kind",
					"the kind %s of %s is gone: nobody reads it", r.definition.Names.Kind, r.definition.Group).
					WithHint("use AuthorizationPolicy, and remove the definition"))
			}
		}
		const bundle = "gateway.networking.k8s.io/bundle-version"
		if has, want := r.Annotations[bundle], least[r.Name]; want != "" && older(has, want) {
			w.report(r, finding.Warnf(oldDefinition, `metadata.annotations["`+bundle+`"]`, "it is of version %s; istiod reads this kind since %s", has, want).
				WithHint("install the definitions of the Gateway API %s or later", want))
		}
	}
}

// older reports whether a version is older than another; what is none isn't. A part behind a hyphen
// counts for nothing.
func older(version, than string) bool {
	a, ok := numbers(version)
	b, _ := numbers(than)
	for i := range a {
		if a[i] != b[i] {
			return ok && a[i] < b[i]
		}
	}
	return false
}

func numbers(version string) (of [3]int, ok bool) {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
	parts := strings.Split(version, ".")
	if len(parts) != len(of) {
		return of, false
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return of, false
		}
		of[i] = n
	}
	return of, true
}
