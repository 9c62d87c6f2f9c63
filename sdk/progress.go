package sdk

import (
	"context"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Progress tells the core that work goes on, from within any call that the SDK makes with ctx: a
// source that looks now and then and finds nothing new has no other way to show that it is not
// stuck. The core shows when it last heard it, and does nothing else with it.
func Progress(ctx context.Context) {
	if ps, ok := ctx.Value(sessionKey{}).(*pluginSession); ok {
		_ = ps.link.Send(ctx, &pb.FromPlugin{Progress: &pb.Progress{}})
	}
}
