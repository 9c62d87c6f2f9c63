package route

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Delegates reports whether a virtual service leaves some of its routes to others.
func Delegates(v *config.VirtualService) bool {
	return slices.ContainsFunc(v.Spec.Http, func(h *networking.HTTPRoute) bool { return h.Delegate != nil })
}

// WithDelegates is a virtual service with the routes of those that it delegates to, in their
// places. find returns one by its key, nil where there is none that counts. What a delegate asks
// for must be within what the root asks for; routes of a delegate for which that isn't so are left
// out.
func WithDelegates(root *config.VirtualService, find func(key string) *config.VirtualService) *config.VirtualService {
	out := &config.VirtualService{Meta: root.Meta, Spec: proto.CloneOf(root.Spec)}
	out.Spec.Http = nil
	add := func(by *config.Delegation, list ...*networking.HTTPRoute) {
		for _, h := range list {
			out.Spec.Http, out.Delegations = append(out.Spec.Http, h), append(out.Delegations, by)
		}
	}
	for _, h := range root.Spec.Http {
		if h.Delegate == nil {
			add(nil, h)
			continue
		}
		namespace := h.Delegate.Namespace
		if namespace == "" {
			namespace = root.Namespace
		}
		if d := find(namespace + "/" + h.Delegate.Name); d != nil {
			add(&config.Delegation{To: d.Key, Match: h.Match}, within(h, d.Spec.Http)...)
		}
	}
	return out
}

func within(root *networking.HTTPRoute, delegate []*networking.HTTPRoute) []*networking.HTTPRoute {
	var out []*networking.HTTPRoute
	for _, d := range delegate {
		matches, ok := matchesWithin(root.Match, d.Match)
		if !ok {
			continue
		}
		merged := inherit(root, d)
		merged.Match = matches
		out = append(out, merged)
	}
	return out
}

// inherit is a delegate's route with what it leaves to the root.
func inherit(root, delegate *networking.HTTPRoute) *networking.HTTPRoute {
	out := proto.CloneOf(delegate)
	out.Name = joinNames(root.Name, delegate.Name)
	given(&out.Rewrite, root.Rewrite)
	given(&out.DirectResponse, root.DirectResponse)
	given(&out.Timeout, root.Timeout)
	given(&out.Retries, root.Retries)
	given(&out.Fault, root.Fault)
	given(&out.Mirror, root.Mirror)
	given(&out.MirrorPercent, root.MirrorPercent) //nolint:staticcheck // the older field still counts
	given(&out.MirrorPercentage, root.MirrorPercentage)
	given(&out.CorsPolicy, root.CorsPolicy)
	given(&out.Headers, root.Headers)
	if out.Mirrors == nil {
		out.Mirrors = root.Mirrors
	}
	return out
}

func given[T any](field **T, root *T) {
	if *field == nil {
		*field = root
	}
}

func joinNames(root, delegate string) string {
	if root == "" || delegate == "" {
		return root + delegate
	}
	return root + "-" + delegate
}

// matchesWithin joins each match of a delegate with those of the root that hold it; false if one
// has none.
func matchesWithin(root, delegate []*networking.HTTPMatchRequest) ([]*networking.HTTPMatchRequest, bool) {
	if len(root) == 0 {
		return delegate, true
	}
	if len(delegate) == 0 {
		return root, true
	}
	var out []*networking.HTTPMatchRequest
	for _, d := range delegate {
		before := len(out)
		for _, r := range root {
			if holds(r, d) {
				out = append(out, both(r, d))
			}
		}
		if len(out) == before {
			return nil, false
		}
	}
	return out, true
}

// both is a match of what root and delegate ask for.
func both(root, delegate *networking.HTTPMatchRequest) *networking.HTTPMatchRequest {
	out := proto.CloneOf(delegate)
	out.Name = joinNames(root.Name, delegate.Name)
	given(&out.Uri, root.Uri)
	given(&out.Scheme, root.Scheme)
	given(&out.Method, root.Method)
	given(&out.Authority, root.Authority)
	out.Headers = joinMaps(root.Headers, delegate.Headers)
	out.WithoutHeaders = joinMaps(root.WithoutHeaders, delegate.WithoutHeaders)
	out.QueryParams = joinMaps(root.QueryParams, delegate.QueryParams)
	out.SourceLabels = joinMaps(root.SourceLabels, delegate.SourceLabels)
	if out.Port == 0 {
		out.Port = root.Port
	}
	if len(out.Gateways) == 0 {
		out.Gateways = root.Gateways
	}
	if out.StatPrefix == "" {
		out.StatPrefix = root.StatPrefix
	}
	return out
}

func joinMaps[V any](root, delegate map[string]V) map[string]V {
	if len(root)+len(delegate) == 0 {
		return nil
	}
	out := maps.Clone(root)
	if out == nil {
		out = map[string]V{}
	}
	maps.Copy(out, delegate)
	return out
}

// holds reports whether everything that a delegate's match asks for may be asked for within the
// root's.
func holds(root, d *networking.HTTPMatchRequest) bool {
	return textHolds(root.Uri, d.Uri) && textHolds(root.Scheme, d.Scheme) && textHolds(root.Method, d.Method) &&
		textHolds(root.Authority, d.Authority) && textsHold(root.Headers, d.Headers) &&
		textsHold(root.WithoutHeaders, d.WithoutHeaders) && textsHold(root.QueryParams, d.QueryParams) &&
		root.IgnoreUriCase == d.IgnoreUriCase && (root.Port == 0 || d.Port == 0 || root.Port == d.Port) &&
		(root.SourceNamespace == "" || root.SourceNamespace == d.SourceNamespace) && // one that the delegate doesn't repeat is a conflict, as istiod has it
		labelsHold(root.SourceLabels, d.SourceLabels) && gatewaysHold(root.Gateways, d.Gateways)
}

func textsHold(root, delegate map[string]*networking.StringMatch) bool {
	for k, d := range delegate {
		if !textHolds(root[k], d) {
			return false
		}
	}
	return true
}

// textHolds reports whether every text that the delegate takes is one that the root takes. Of
// regular expressions nothing is known.
func textHolds(root, delegate *networking.StringMatch) bool {
	switch {
	case root == nil || delegate == nil:
		return true
	case root.GetRegex() != "" || delegate.GetRegex() != "":
		return false
	case root.GetExact() != "":
		return delegate.GetPrefix() == "" && delegate.GetExact() == root.GetExact()
	case root.GetPrefix() != "" && delegate.GetPrefix() != "":
		return strings.HasPrefix(delegate.GetPrefix(), root.GetPrefix())
	case root.GetPrefix() != "" && delegate.GetExact() != "":
		return strings.HasPrefix(delegate.GetExact(), root.GetPrefix())
	}
	return false
}

func labelsHold(root, delegate map[string]string) bool {
	for k, v := range delegate {
		if r, ok := root[k]; ok && r != v {
			return false
		}
	}
	return true
}

func gatewaysHold(root, delegate []string) bool {
	if len(root) == 0 {
		return true
	}
	return !slices.ContainsFunc(delegate, func(g string) bool { return !slices.Contains(root, g) })
}
