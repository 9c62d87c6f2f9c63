package environment

import (
	"fmt"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// BenchmarkCommit is one changed row among 10,000.
func BenchmarkCommit(b *testing.B) {
	e, s := New(), &Shard{Name: "files"}
	var rows []*pb.Row
	for i := range 10000 {
		rows = append(rows, row(fmt.Sprint("row-", i), "0"))
	}
	e.Update(s, "t", rows, nil)
	e.Commit(false, nil)
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		e.Update(s, "t", []*pb.Row{row("row-7", fmt.Sprint(i))}, nil)
		if c := e.Commit(false, nil); len(c["t"]) != 1 {
			b.Fatal(c)
		}
	}
}

// BenchmarkRead is one look at an endpoint, and one at all, of two registries of which one is
// preferred.
func BenchmarkRead(b *testing.B) {
	e, consul, kube := New(), &Shard{Name: "consul", Priority: 10}, &Shard{Name: "kube", Order: 1}
	services := map[string]int{}
	for i := range 100 {
		services[fmt.Sprintf("shop/s%d.example", i)] = 10
	}
	says(e, consul, services)
	says(e, kube, services)
	e.Commit(false, nil)
	b.Run("row", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if e.Row(Name{Endpoints, "shop/s7.example/http/consul-3:80"}, false) == nil {
				b.Fatal("it is not served")
			}
		}
	})
	b.Run("rows", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for range e.Rows(Endpoints, false) {
				n++
			}
			if n != 1000 {
				b.Fatal(n)
			}
		}
	})
}

// BenchmarkSay is a row that a source says again, while another source's is kept aside.
func BenchmarkSay(b *testing.B) {
	e, files, other := New(), &Shard{Name: "files"}, &Shard{Name: "other"}
	e.Update(files, "t", []*pb.Row{row("a", "1")}, nil)
	e.Update(other, "t", []*pb.Row{row("b", "1")}, nil)
	e.Commit(false, nil)
	e.Settle()
	e.Update(other, "t", nil, []string{"b"})
	e.Commit(false, nil)
	if e.Hold(func(Unsettled) bool { return true }) != 1 {
		b.Fatal("nothing is held")
	}
	e.Commit(false, nil)
	again := []*pb.Row{row("a", "1")}
	b.ReportAllocs()
	for b.Loop() {
		e.Update(files, "t", again, nil)
	}
}
