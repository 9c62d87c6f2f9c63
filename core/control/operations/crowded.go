package operations

import "github.com/coxswain-mesh/coxswain/core/environment"

// Crowded returns the namespaces of which rows are refused, because they are full.
func (c *Core) Crowded() []environment.Crowded {
	return Locked(c.Shell, c.Middle.State.Env.Spaces.Crowded)
}
