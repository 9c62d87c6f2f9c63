package routes

import (
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// sessions keep requests with an endpoint.
type sessions struct{ from *From }

// to are the settings that keep sessions of a host's service with an endpoint; nil without.
func (x sessions) to(c *incr.Ctx, h scope.Host) map[string]*anypb.Any {
	if !x.from.PersistentSessions {
		return nil
	}
	s, ok := x.from.Scopes.Visible.Get(c, h)
	if !ok {
		return nil
	}
	session, ok := s.Session()
	if !ok {
		return nil
	}
	return route.SessionFor(session)
}

// of are those of the last of hosts that has a service.
func (x sessions) of(c *incr.Ctx, s scope.Scope, hosts []string) map[string]*anypb.Any {
	for i := len(hosts) - 1; i >= 0 && x.from.PersistentSessions; i-- {
		h := scope.Host{Scope: s, Host: hosts[i]}
		if _, ok := x.from.Scopes.Visible.Get(c, h); ok {
			return x.to(c, h)
		}
	}
	return nil
}
