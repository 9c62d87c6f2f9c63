package control

import (
	"context"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Removal finds out what would go with a plugin by rules that leave it out, and has decide judge that; why is what speaks against it. Rows go in a
// revision of their own, of which proxies see nothing before decide has agreed; if it doesn't, they are put back. Once the plugin's session has ended
// Withdraw is to follow.
func (c *Control) Removal(ctx context.Context, name string, rules state.Rules, decide func(d *guard.Difference, why []string) error) error {
	c.mu.Lock()
	k, d, err := c.plugins.Departure.Goes(name)
	if err != nil {
		c.mu.Unlock()
		return err
	}
	if k.Kind() == pb.KindAuthenticator {
		c.mu.Unlock()
		return decide(d, c.UnknownWithout(ctx, k))
	}
	if why, known := c.plugins.Departure.SpeaksAgainst(k, d, rules); known {
		defer c.mu.Unlock()
		return decide(d, why)
	}
	p := c.plugins.Departure.Depart(k, d, decide)
	c.schedule(c.state.Clock.Now())
	c.mu.Unlock()
	select {
	case err := <-p.Done:
		return err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case err := <-p.Done:
		return err
	default:
	}
	c.plugins.Departure.Stays(p, context.Cause(ctx))
	return context.Cause(ctx)
}
