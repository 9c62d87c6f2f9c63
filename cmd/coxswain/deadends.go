package main

import (
	"context"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
)

// noteDeadEnds notes what of objects leads to nothing, and which of their regular expressions
// connected proxies may refuse, from what a control plane has now.
func noteDeadEnds(ctx context.Context, list []show.Object, addr string) error {
	r := &analysis.Reader{Check: validation.New().Check}
	if err := readLive(ctx, r, addr); err != nil {
		return err
	}
	type name struct{ kind, key string }
	found, large := map[name][]show.DeadEnd{}, map[name][]admin.Fault{}
	for _, f := range r.All() {
		n := name{f.Kind, f.Namespace + "/" + f.Name}
		switch {
		case analysis.LeadsNowhere(f.Code):
			found[n] = append(found[n], show.DeadEnd{Field: f.Field, Message: f.Message, Code: f.Code})
		case analysis.IsLargeRegex(f.Code):
			large[n] = append(large[n], admin.Fault{
				File: f.File, Line: f.Line, Column: f.Column, Kind: f.Kind, Namespace: f.Namespace, Name: f.Name,
				Code: f.Code, Severity: f.Severity.String(), Field: f.Field, Message: f.Message, Hint: f.Hint,
			})
		}
	}
	for i, o := range list {
		n := name{o.Kind, o.Key}
		list[i].DeadEnds = found[n]
		list[i].Warn(large[n])
	}
	return nil
}
