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
	e.Pending.Update(s, "t", rows, nil)
	e.Pending.Commit(false, nil)
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		e.Pending.Update(s, "t", []*pb.Row{row("row-7", fmt.Sprint(i))}, nil)
		if c := e.Pending.Commit(false, nil); len(c["t"]) != 1 {
			b.Fatal(c)
		}
	}
}

// BenchmarkRead is one look at an endpoint, and one at all, of two registries of which one is
// preferred.
func BenchmarkRead(b *testing.B) {
	e, _ := twoRegistries(100)
	b.Run("row", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if e.Committed.Row(Name{Endpoints, "shop/s7.example/http/consul-3:80"}, false) == nil {
				b.Fatal("it is not served")
			}
		}
	})
	b.Run("rows", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for range e.Committed.Rows(Endpoints, false) {
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
	e.Pending.Update(files, "t", []*pb.Row{row("a", "1")}, nil)
	e.Pending.Update(other, "t", []*pb.Row{row("b", "1")}, nil)
	e.Pending.Commit(false, nil)
	e.Unseen.Seen()
	e.Pending.Update(other, "t", nil, []string{"b"})
	e.Pending.Commit(false, nil)
	if e.Held.Hold(func(UnseenRow) bool { return true }) != 1 {
		b.Fatal("nothing is held")
	}
	e.Pending.Commit(false, nil)
	again := []*pb.Row{row("a", "1")}
	b.ReportAllocs()
	for b.Loop() {
		e.Pending.Update(files, "t", again, nil)
	}
}
