package istio

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/clusterlocal"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// isLocal reports whether clients of a host reach endpoints of their own cluster alone.
func (g *graph) isLocal(c *incr.Ctx, host string) bool {
	return clusterlocal.Has(g.localHosts.Of(c, only), host)
}
