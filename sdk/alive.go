package sdk

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// freed says that memory was freed which the process may give back.
var freed atomic.Bool

// heartbeat is how often a sign of life is sent while author code runs.
const heartbeat = time.Second

// alive sends signs of life while f runs. They say that the process works, not that f will end: the
// core's deadlines for a revision and a call are what catches author code that hangs.
func (ps *pluginSession) alive(ctx context.Context, f func()) {
	stop := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = ps.link.Send(ctx, &pb.FromPlugin{Progress: &pb.Progress{}})
			case <-stop:
				return
			}
		}
	})
	defer beats.Wait()
	defer close(stop)
	f()
}
