package consul

import (
	"fmt"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// BenchmarkOneOfMany: of 10,000 instances of a service one gets another address.
func BenchmarkOneOfMany(b *testing.B) {
	c, err := parse([]byte(`{}`))
	if err != nil {
		b.Fatal(err)
	}
	book, w := newBook(c), &watch{name: "web"}
	all := make([]entry, 10_000)
	for i := range all {
		all[i] = at("web", i, func(e *entry) { e.Service.Address = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) })
	}
	book.set(w, all)
	book.Changes()
	for i := 0; b.Loop(); i++ {
		all[i%len(all)].Service.Address = fmt.Sprintf("11.%d.%d.%d", i>>16&255, i>>8&255, i&255)
		book.set(w, all)
		rows := book.Changes()
		if len(rows.Upserts[state.Endpoints]) != 1 {
			b.Fatalf("%d rows", len(rows.Upserts[state.Endpoints]))
		}
	}
}
