// Package mosn is the built-in plugin patch/mosn: it gives MOSN listeners that it can use, where
// what Envoy gets makes it exit or refuse them. The entry's `select` says which nodes are MOSN.
//
// MOSN 1.6 reads `deprecated_v1.bind_to_port` alone, so that it would bind the addresses of
// services; and it takes listeners without an original destination only with exactly one filter
// chain. Of header matches it reads the deprecated fields alone.
package mosn

import (
	"errors"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const (
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.PatchPlugin {
	return sdk.PatchPlugin{
		Name: "mosn", Version: "1",
		Types: []sdk.Type{{Url: listenerType}, {Url: routeType}},
		New:   sdk.WithoutConfig(func() (sdk.Patch, error) { return sdk.PatchFunc(patch), nil }),
	}
}

func patch(_ *state.State, typeURL string, _ map[string]string, given []sdk.Resource) (changed []sdk.Resource, _ []string, _ error) {
	var faults []error
	for _, r := range given {
		body, err := patched(typeURL, r.Body)
		switch {
		case err != nil:
			faults = append(faults, err)
		case body != nil:
			r.Body = body
			changed = append(changed, r)
		}
	}
	return changed, nil, errors.Join(faults...)
}

// patched returns what becomes of a resource; nil: it stays as it is.
func patched(typeURL string, body []byte) ([]byte, error) {
	if typeURL == routeType {
		return edit(body, &routev3.RouteConfiguration{}, func(c *routev3.RouteConfiguration) error {
			headers(c)
			return nil
		})
	}
	return edit(body, &listenerv3.Listener{}, func(l *listenerv3.Listener) error {
		bind(l)
		single(l)
		return inlined(l)
	})
}

// edit returns a changed resource's bytes; nil: nothing was changed.
func edit[M proto.Message](body []byte, m M, change func(M) error) ([]byte, error) {
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, err
	}
	before := proto.CloneOf(m)
	if err := change(m); err != nil || proto.Equal(before, m) {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// bind says in both fields that a listener doesn't open its port.
func bind(l *listenerv3.Listener) {
	if l.BindToPort != nil && !l.BindToPort.Value {
		l.DeprecatedV1 = &listenerv3.Listener_DeprecatedV1{BindToPort: wrapperspb.Bool(false)}
	}
}

const originalDestination = "envoy.filters.listener.original_dst"

// single leaves one chain in a listener that doesn't look where connections wanted to go: the one
// for all that no other takes, else the first that asks for nothing, else the first. MOSN doesn't
// look into connections (http_inspector), so that the others would have no use.
func single(l *listenerv3.Listener) {
	if looks(l) {
		return
	}
	chain := l.DefaultFilterChain
	for _, c := range l.FilterChains {
		if chain == nil && c.FilterChainMatch == nil {
			chain = c
		}
	}
	if chain == nil && len(l.FilterChains) > 0 {
		chain = l.FilterChains[0]
	}
	if chain != nil {
		l.FilterChains, l.DefaultFilterChain = []*listenerv3.FilterChain{chain}, nil
	}
}

// looks reports whether a listener looks where connections wanted to go.
func looks(l *listenerv3.Listener) bool {
	if l.UseOriginalDst.GetValue() {
		return true
	}
	for _, f := range l.ListenerFilters {
		if f.Name == originalDestination {
			return true
		}
	}
	return false
}
