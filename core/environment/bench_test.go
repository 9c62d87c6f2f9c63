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
