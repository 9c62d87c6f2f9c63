package xds

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/mask"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// mostSearched is how many bytes of resources are searched for what a refusal may repeat: one
// refusal costs some milliseconds.
const mostSearched = 64 << 10

// unsaid is a refusal's reason without what the client repeats of the secrets in what it was sent:
// first in the resources that the reason names, then in others, mostSearched bytes of them in all.
// What looks like a secret is not in it either, wherever it comes from.
func unsaid(m *machine, w *watch, nonce, reason string) string {
	i := slices.IndexFunc(w.flights, func(f flight) bool { return f.nonce == nonce })
	if reason == "" || i < 0 {
		return mask.Repeated(reason, nil)
	}
	sent := slices.Clone(m.common.memo.change(w.acked.to, w.flights[i].to).upserts)
	for _, c := range w.held.culprits {
		sent = append(sent, c.body)
	}
	named := func(b *view.Body) bool { return b.Size(false) <= mostSearched && mentions(reason, b.Name()) }
	sent = append(slices.DeleteFunc(slices.Clone(sent), func(b *view.Body) bool { return !named(b) }), slices.DeleteFunc(sent, named)...)
	var values []string
	left := mostSearched
	for _, b := range sent {
		if b.Size(false) > left {
			continue
		}
		left -= b.Size(false)
		values = append(values, redact.Values(w.url, b.Value())...)
	}
	return mask.Repeated(reason, values)
}
