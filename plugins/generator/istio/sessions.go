package istio

import (
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// sessionsTo are the settings that keep sessions of a host's service with an endpoint; nil without.
func (g *graph) sessionsTo(c *incr.Ctx, h scope.Host) map[string]*anypb.Any {
	if !g.persistentSessions {
		return nil
	}
	s, ok := g.scopes.Visible.Get(c, h)
	if !ok {
		return nil
	}
	session, ok := s.Session()
	if !ok {
		return nil
	}
	return route.SessionFor(session)
}

// sessionsOf are those of the last of hosts that has a service.
func (g *graph) sessionsOf(c *incr.Ctx, s scope.Scope, hosts []string) map[string]*anypb.Any {
	for i := len(hosts) - 1; i >= 0 && g.persistentSessions; i-- {
		h := scope.Host{Scope: s, Host: hosts[i]}
		if _, ok := g.scopes.Visible.Get(c, h); ok {
			return g.sessionsTo(c, h)
		}
	}
	return nil
}
