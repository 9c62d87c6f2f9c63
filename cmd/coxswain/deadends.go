package main

import (
	"context"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
)

// noteDeadEnds notes what of objects leads to nothing, from what a control plane has now.
func noteDeadEnds(ctx context.Context, list []show.Object, addr string) error {
	r := &analysis.Reader{Check: validation.New().Check}
	if err := readLive(ctx, r, addr); err != nil {
		return err
	}
	type name struct{ kind, key string }
	found := map[name][]show.DeadEnd{}
	for _, f := range r.All() {
		if !analysis.LeadsNowhere(f.Code) {
			continue
		}
		n := name{f.Kind, f.Namespace + "/" + f.Name}
		found[n] = append(found[n], show.DeadEnd{Field: f.Field, Message: f.Message, Code: f.Code})
	}
	for i, o := range list {
		list[i].DeadEnds = found[name{o.Kind, o.Key}]
	}
	return nil
}
