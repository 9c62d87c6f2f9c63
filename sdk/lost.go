package sdk

import (
	"context"
	"strings"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Lost tells the core that the source of the plugin's rows is away, such as a registry's server
// that doesn't answer, and why; there must be no secret in the error. It is called from within any
// call that the SDK makes with ctx, as often as the source fails: the core is told once. What was
// published stays served for as long as the entry's onLoss says, and `coxswain plugins` shows since
// when the source is away. While it is away a plugin may, and should, publish what it learns all
// the same.
func Lost(ctx context.Context, why error) { said(ctx, true, why) }

// Found tells the core that the source is there, once what was published is what it has. It may be
// called whenever the source answers: only what follows a Lost is told.
func Found(ctx context.Context) { said(ctx, false, nil) }

func said(ctx context.Context, lost bool, why error) {
	ps, ok := ctx.Value(sessionKey{}).(*pluginSession)
	if !ok {
		return
	}
	ps.told.source.mu.Lock() // also while it is sent, so that the core hears it in order
	defer ps.told.source.mu.Unlock()
	if m := ps.told.source.change(lost, why); m != nil {
		_ = ps.link.Send(ctx, m)
	}
}

// reach is whether a source is away, as the core was told.
type reach struct {
	mu   sync.Mutex
	lost bool
}

// maxWhy is how long a reason may be.
const maxWhy = 300

// change returns what the core is to be told; nil: nothing. mu is held.
func (r *reach) change(lost bool, why error) *pb.FromPlugin {
	if r.lost == lost {
		return nil
	}
	if r.lost = lost; !lost {
		return &pb.FromPlugin{Found: &pb.Found{}}
	}
	reason := "it does not say why"
	if why != nil {
		reason = strings.Join(strings.Fields(why.Error()), " ")
	}
	if len(reason) > maxWhy {
		reason = strings.ToValidUTF8(reason[:maxWhy], "") + "…"
	}
	return &pb.FromPlugin{Lost: &pb.Lost{Reason: reason}}
}
