package instances

import (
	"fmt"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// BenchmarkOneOfMany: of 10,000 instances of a service one gets another address.
func BenchmarkOneOfMany(b *testing.B) {
	book := New(named())
	set := func(i, net int) {
		m := at(fmt.Sprintf("%d.%d.%d.%d", net, i>>16&255, i>>8&255, i&255), 80)
		m.Endpoint.Labels = map[string]string{"zone": "a", "version": "1"}
		book.Set("web", fmt.Sprint(i%10_000), []Member{m}, nil)
	}
	for i := range 10_000 {
		set(i, 10)
	}
	book.Changes()
	for i := 0; b.Loop(); i++ {
		set(i, 11)
		if n := len(book.Changes().Upserts[state.Endpoints]); n != 1 {
			b.Fatalf("%d rows", n)
		}
	}
}
