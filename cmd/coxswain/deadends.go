package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
)

// deadEnd is a part of an object that leads to nothing: a route to a host that is not there, a
// selector that selects nobody.
type deadEnd struct {
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Code    string `json:"code"`
}

// noteDeadEnds notes what of objects leads to nothing, from what a control plane has now.
func noteDeadEnds(ctx context.Context, list []effective, addr string) error {
	r := &analysis.Reader{Check: validation.New().Check}
	if err := readLive(ctx, r, addr); err != nil {
		return err
	}
	type name struct{ kind, key string }
	found := map[name][]deadEnd{}
	for _, f := range r.All() {
		if !analysis.LeadsNowhere(f.Code) {
			continue
		}
		n := name{f.Kind, f.Namespace + "/" + f.Name}
		found[n] = append(found[n], deadEnd{f.Field, f.Message, f.Code})
	}
	for i, o := range list {
		list[i].DeadEnds = found[name{o.Kind, o.Key}]
	}
	return nil
}

// said is a dead end of an object in words.
func (d deadEnd) said(o effective) string {
	text := fmt.Sprintf("%s: %s %s: ", cmp.Or(o.Source, "-"), o.Kind, o.Key)
	if d.Field != "" {
		text += d.Field + ": "
	}
	return text + d.Message + " (" + d.Code + ")"
}
