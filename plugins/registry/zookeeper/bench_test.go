package zookeeper

import (
	"fmt"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// BenchmarkOneOfMany: of 10,000 instances of an application, which all serve the same interface,
// one gets another address.
func BenchmarkOneOfMany(b *testing.B) {
	const many = 10_000
	p := newTable()
	book := newBook(configured(b, `{}`), p)
	value := func(i, net int) []byte {
		return fmt.Appendf(nil, `{"name": "app", "id": "%d", "address": "%d.%d.%d.%d", "port": 20880, "payload": `+
			`{"metadata": {"dubbo.endpoints": "[{\"port\":20880,\"protocol\":\"tri\"}]", "dubbo.metadata.revision": "r",`+
			` "zone": "a"}}}`,
			i%many, net, i>>16&255, i>>8&255, i&255)
	}
	book.serves("/dubbo/metadata/app/r", []byte(`{"services": {"a.B:tri": {"name": "a.B", "protocol": "tri"}}}`))
	at := func(i int) string { return fmt.Sprintf("/services/app/%d", i%many) }
	for i := range many {
		book.value(at(i), "app", value(i, 10))
	}
	give := func() {
		if err := book.publish(); err != nil {
			b.Fatal(err)
		}
	}
	give()
	for i := 0; b.Loop(); i++ {
		book.value(at(i), "app", value(i, 11))
		give()
	}
	if n := len(p.rows[state.Endpoints]); n != 2*many {
		b.Fatalf("%d endpoints", n)
	}
}
