package routes

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/held"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// patched are route configurations after patches, piece by piece: one that patches spoil keeps what
// it was last, and the others go on.
type patched struct {
	whole  *incr.Func[Key, *patchedRoutes]
	pieces *incr.Func[PatchedHost, patchedPiece]
}

// PatchedHost names a virtual host after patches; without a name it is the rest of the
// configuration.
type PatchedHost struct {
	Key  Key
	Name string
	// Another: there is one before it with that name, or it has none.
	Another bool
}

// String says which it is, for people.
func (k PatchedHost) String() string {
	switch {
	case k.Another:
		return fmt.Sprintf("another %s of %s", k.Name, k.Key.Name)
	case k.Name == "":
		return "of " + k.Key.Name
	}
	return fmt.Sprintf("%s of %s", k.Name, k.Key.Name)
}

// patchedPiece is one as a field of a route configuration, and its domains.
type patchedPiece struct {
	field   []byte
	domains []string
}

// patchedRoutes are a route configuration after patches, of which Envoy may refuse something.
type patchedRoutes struct {
	config *routev3.RouteConfiguration
	hosts  map[string]*routev3.VirtualHost
	// plain are the virtual hosts that there are without patches; owner is whose a domain is, in
	// lower case.
	plain map[string]*routev3.VirtualHost
	owner map[string]string
}

func newPatched(graph *incr.Graph, x *Routes) patched {
	var p patched
	p.whole = incr.NewFunc(graph, "patches of route configuration", nil, func(c *incr.Ctx, k Key) (*patchedRoutes, error) {
		plain := k
		plain.View.Patches = ""
		fields, ok := x.Configurations.Get(c, plain)
		if !ok {
			return nil, incr.Absent
		}
		return patchRoutes(slices.Concat(fields...), func(m *routev3.RouteConfiguration) {
			x.from.Patches.Set(c, k.View.Patches).PatchRoutes(patches.Side(k.View.Gateways != ""), m, k.View.Servers().Sources)
		})
	})
	p.pieces = incr.NewFunc(graph, "patched virtual host", func(a, b patchedPiece) bool { return bytes.Equal(a.field, b.field) },
		func(c *incr.Ctx, k PatchedHost) (patchedPiece, error) {
			whole, ok := p.whole.Get(c, k.Key)
			if !ok {
				return patchedPiece{}, incr.Absent
			}
			if k.Another {
				return patchedPiece{}, whole.refused(fmt.Errorf("a virtual host has no name, or that of another: %q", k.Name))
			}
			return whole.piece(k.Name)
		})
	return p
}

// patchRoutes patches a route configuration.
func patchRoutes(body []byte, patch func(*routev3.RouteConfiguration)) (*patchedRoutes, error) {
	out := &patchedRoutes{
		config: &routev3.RouteConfiguration{}, hosts: map[string]*routev3.VirtualHost{},
		plain: map[string]*routev3.VirtualHost{}, owner: map[string]string{},
	}
	if err := proto.Unmarshal(body, out.config); err != nil {
		return nil, err
	}
	for _, h := range out.config.VirtualHosts {
		out.plain[h.Name] = proto.CloneOf(h)
	}
	patch(out.config)
	for _, h := range out.config.VirtualHosts {
		if out.hosts[h.Name] == nil {
			out.hosts[h.Name] = h
			out.claim(h.Name, out.plain[h.Name].GetDomains())
		}
	}
	for _, h := range out.config.VirtualHosts {
		out.claim(h.Name, h.Domains)
	}
	return out, nil
}

func (p *patchedRoutes) claim(name string, domains []string) {
	for _, d := range domains {
		if d = strings.ToLower(d); p.owner[d] == "" {
			p.owner[d] = name
		}
	}
}

// piece is a virtual host, or without a name the rest, if Envoy takes it.
func (p *patchedRoutes) piece(name string) (patchedPiece, error) {
	if name == "" {
		field, err := encode.TryPatched(shallowRoutes(p.config))
		return patchedPiece{field: field}, err
	}
	h := p.hosts[name]
	for _, d := range h.Domains {
		if owner := p.owner[strings.ToLower(d)]; owner != name {
			return patchedPiece{}, p.refused(fmt.Errorf("domain %q is one of virtual host %s", d, owner))
		}
	}
	alone := &routev3.RouteConfiguration{Name: p.config.Name, VirtualHosts: []*routev3.VirtualHost{h}}
	if _, err := encode.TryPatched(alone); err != nil {
		return patchedPiece{}, err
	}
	return patchedPiece{hostField(h), h.Domains}, nil
}

// refused says that Envoy would refuse the configuration for something in it.
func (p *patchedRoutes) refused(err error) error {
	return &encode.RefusedError{Type: p.config.ProtoReflect().Descriptor().FullName(), Name: p.config.Name, Err: err}
}

// shallowRoutes are settings of a route configuration, without its virtual hosts.
func shallowRoutes(m *routev3.RouteConfiguration) *routev3.RouteConfiguration {
	out := &routev3.RouteConfiguration{}
	for d, v := range m.ProtoReflect().Range {
		if d.Name() != "virtual_hosts" {
			out.ProtoReflect().Set(d, v)
		}
	}
	return out
}

// hostField is a virtual host, which was checked, as a field of a route configuration.
func hostField(h *routev3.VirtualHost) []byte {
	b := encode.Wrap(h).Value
	return protowire.AppendBytes(protowire.AppendTag(nil, route.VirtualHostsField, protowire.BytesType), b)
}

// of is a route configuration after patches. A virtual host that never was what Envoy takes is as
// it is without them, or left out if they add it; but where what they say of it decides who gets
// in, it is closed until it is known what proxies had (see held), as are the settings beside
// virtual hosts.
func (p patched) of(c *incr.Ctx, k Key) ([][]byte, error) {
	whole, ok := p.whole.Get(c, k)
	if !ok {
		return nil, nil
	}
	out := assembly{taken: map[string]bool{}}
	if rest, ok := p.pieces.Get(c, PatchedHost{Key: k}); ok {
		out.fields = append(out.fields, rest.field)
	} else {
		m := &routev3.RouteConfiguration{Name: k.Name}
		held.Routes(m)
		out.fields = append(out.fields, encode.Bytes(m))
	}
	done := map[string]bool{}
	for _, h := range whole.config.VirtualHosts {
		if done[h.Name] || h.Name == "" {
			p.pieces.Get(c, PatchedHost{k, h.Name, true})
			continue
		}
		done[h.Name] = true
		if one, ok := p.pieces.Get(c, PatchedHost{Key: k, Name: h.Name}); ok && out.put(one) {
			continue
		}
		plain := whole.plain[h.Name]
		if plain != nil && (!proto.Equal(deciding(plain), deciding(h)) || !out.put(patchedPiece{hostField(plain), plain.Domains})) {
			out.close(plain)
		}
	}
	return out.fields, nil
}

// assembly is a route configuration that is put together, and the domains in it, in lower case.
type assembly struct {
	fields [][]byte
	taken  map[string]bool
}

func (a *assembly) has(domain string) bool { return a.taken[strings.ToLower(domain)] }

// put adds a virtual host; false: another one has a domain of it.
func (a *assembly) put(one patchedPiece) bool {
	if slices.ContainsFunc(one.domains, a.has) {
		return false
	}
	for _, d := range one.domains {
		a.taken[strings.ToLower(d)] = true
	}
	a.fields = append(a.fields, one.field)
	return true
}

// close adds a virtual host that is closed, with those of its domains that no other one has.
func (a *assembly) close(h *routev3.VirtualHost) {
	domains := slices.DeleteFunc(slices.Clone(h.Domains), a.has)
	if len(domains) > 0 {
		a.put(patchedPiece{hostField(held.Host(h.Name, domains)), domains})
	}
}

// deciding is what of a virtual host may decide who may do what, and where requests go.
func deciding(h *routev3.VirtualHost) *routev3.VirtualHost {
	out := &routev3.VirtualHost{
		RequireTls: h.RequireTls, RateLimits: h.RateLimits, RequestHeadersToRemove: h.RequestHeadersToRemove, TypedPerFilterConfig: h.TypedPerFilterConfig,
		Matcher: h.Matcher, RequestMirrorPolicies: h.RequestMirrorPolicies,
	}
	for _, r := range h.Routes {
		m := proto.CloneOf(r)
		m.Name, m.Metadata, m.Decorator, m.Tracing, m.StatPrefix = "", nil, nil, nil, ""
		m.RequestHeadersToAdd, m.ResponseHeadersToAdd, m.ResponseHeadersToRemove = nil, nil, nil
		if a := m.GetRoute(); a != nil {
			a.Timeout, a.IdleTimeout, a.RetryPolicy, a.MaxStreamDuration = nil, nil, nil, nil
		}
		out.Routes = append(out.Routes, m)
	}
	return out
}
