package swap

import (
	"context"
)

// take waits for the turn to change something.
func (s *Swapper) take(ctx context.Context) (release func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
