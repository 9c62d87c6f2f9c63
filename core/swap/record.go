package swap

import (
	"context"

	"github.com/coxswain-mesh/coxswain/sdk/recording"
)

// Record restarts a plugin, so that a session begins, and writes all that is said in it, until stop
// is called. Others may go on changing plugins meanwhile. If the restart fails, nothing more is
// written.
func (s *Swapper) Record(ctx context.Context, name string, to *recording.Writer) (stop func(), err error) {
	stop, err = s.cfg.Host.Record(name, to)
	if err != nil {
		return nil, err
	}
	if _, err := s.Restart(ctx, name, Options{Force: true}); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}
