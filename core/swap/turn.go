package swap

import "context"

// turn is held by whoever changes something.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// acquire waits for the turn to change something.
func (t turn) acquire(ctx context.Context) (release func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
