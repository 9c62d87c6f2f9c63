package config

import (
	"fmt"
	"regexp"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// EnvoyFilters is the table of EnvoyFilter.
const EnvoyFilters = "networking.istio.io/EnvoyFilter"

// EnvoyFilter patches what others make.
type EnvoyFilter struct {
	Meta
	Spec *networking.EnvoyFilter
	// versions are the expressions that patches have for a proxy's version, by patch; nil without.
	versions []*regexp.Regexp
}

// ParseEnvoyFilter reads a row.
func ParseEnvoyFilter(row *pb.Row) (*EnvoyFilter, error) {
	f := &EnvoyFilter{Meta: parseMeta(row), Spec: &networking.EnvoyFilter{}}
	if err := unmarshal(row, f.Spec); err != nil {
		return nil, err
	}
	if faults := istio.VersionFaults(f.Spec, envoyrules.RegexSize); len(faults) > 0 {
		return nil, fmt.Errorf("EnvoyFilter %s: configPatches[%d].match.proxy.proxyVersion: %w", row.Key, faults[0].Patch, faults[0].Err)
	}
	f.versions = make([]*regexp.Regexp, len(f.Spec.ConfigPatches))
	known := map[string]*regexp.Regexp{}
	for i, p := range f.Spec.ConfigPatches {
		text := p.GetMatch().GetProxy().GetProxyVersion()
		if text == "" {
			continue
		}
		if known[text] == nil {
			expression, err := regexp.Compile(text)
			if err != nil {
				return nil, fmt.Errorf("EnvoyFilter %s: configPatches[%d].match.proxy.proxyVersion: %w", row.Key, i, err)
			}
			known[text] = expression
		}
		f.versions[i] = known[text]
	}
	return f, nil
}

// For reports whether it is for a workload in a namespace with labels.
func (f *EnvoyFilter) For(namespace string, labels map[string]string) bool {
	return istio.AttachesTo(f.Spec.GetTargetRefs(), f.Spec.GetWorkloadSelector().GetLabels(), f.Namespace == namespace, labels)
}

// Admits reports whether a patch is for a proxy of a version; says reports whether its metadata has
// a value.
func (f *EnvoyFilter) Admits(patch int, version string, says func(name, value string) bool) bool {
	if e := f.versions[patch]; e != nil && (version == "" || !e.MatchString(version)) {
		return false
	}
	for k, v := range f.Spec.ConfigPatches[patch].GetMatch().GetProxy().GetMetadata() {
		if !says(k, v) {
			return false
		}
	}
	return true
}
