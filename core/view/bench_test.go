package view

import (
	"fmt"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// BenchmarkChange is one changed resource of a view that has 1000: its body is stored, named, and
// the old one is let go.
func BenchmarkChange(b *testing.B) {
	vs, value := newViews(), make([]byte, 1500)
	vs.Describe(&pb.View{View: 1, Type: "t"})
	next := uint64(0)
	change := func(names ...string) {
		m := &pb.Change{View: 1, Type: "t"}
		bodies := &pb.Bodies{}
		for _, n := range names {
			next++
			bodies.Bodies = append(bodies.Bodies, &pb.Body{Id: next, Bytes: fmt.Append(value, next)})
			m.Upserts = append(m.Upserts, &pb.Entry{Name: n, Body: next})
		}
		if err := vs.bodies.Store(bodies); err != nil {
			b.Fatal(err)
		}
		if err := vs.Change(m); err != nil {
			b.Fatal(err)
		}
		vs.Publish()
		vs.bodies.Collect(vs.bodies.Freed())
	}
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("outbound|80||service-%d.default.svc.cluster.local", i))
	}
	change(names...)
	b.ReportAllocs()
	for b.Loop() {
		change(names[7])
	}
	if bodies, _ := vs.bodies.Len(); bodies != 1000 {
		b.Fatal(bodies)
	}
}

// BenchmarkWant is one of many connections that want the same 1000 names coming and going.
func BenchmarkWant(b *testing.B) {
	vs := newViews()
	vs.Describe(&pb.View{View: 1, Type: "t"})
	v := vs.Get("t", 1)
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprint("name-", i))
	}
	v.Want(false, names)
	b.ReportAllocs()
	for b.Loop() {
		v.Want(false, names)
		v.Drop(false, names)
	}
}
