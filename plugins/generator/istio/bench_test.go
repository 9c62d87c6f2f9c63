package istio

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// w2 is the mesh of the load bench.
var w2 = meshSize{services: 1000, endpoints: 10, namespaces: 10}

// BenchmarkCold is a sidecar of each namespace that asks for everything at a generator that has
// made nothing yet.
func BenchmarkCold(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		f := newFleet(b, w2)
		b.StartTimer()
		for i := range w2.namespaces {
			f.connect(i)
		}
		b.ReportMetric(float64(f.told.bytes)/1e6, "MB-told/op")
		b.ReportMetric(float64(f.e.Kept().Nodes), "nodes")
	}
}

// BenchmarkViews is what views take, and what is left of it when they are gone, at rest.
func BenchmarkViews(b *testing.B) {
	size := meshSize{services: 1000, endpoints: 10, namespaces: 50}
	for b.Loop() {
		f := newFleet(b, size)
		empty, rows := live(), f.e.Kept().Nodes
		for i := range size.namespaces {
			f.connect(i)
		}
		full, nodes := live(), f.e.Kept().Nodes
		for i := range size.namespaces {
			f.leave(i)
		}
		f.e.Rest(b.Context(), f.told)
		after := live()
		b.ReportMetric(float64(full-empty)/1e6, "MB-views")
		b.ReportMetric(float64(full-empty)/float64(nodes-rows), "B/node")
		b.ReportMetric(float64(full-after)/float64(full-empty), "given-back")
		b.ReportMetric(float64(f.e.Kept().Nodes-rows), "nodes-left")
	}
}

// live returns the bytes that are in use.
func live() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// BenchmarkRead is the first state: rows are read.
func BenchmarkRead(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newFleet(b, w2)
	}
}

// BenchmarkChange is what one change costs where a sidecar of each namespace has everything.
func BenchmarkChange(b *testing.B) {
	f := newFleet(b, w2)
	for i := range w2.namespaces {
		f.connect(i)
	}
	n := 0
	run := func(name string, change func(n int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n++
				change(n)
			}
		})
	}
	run("endpoint", func(n int) { f.change(rows(state.Endpoints, w2.endpoint(0, 0, address(11, n)))) })
	run("virtual service", func(n int) { f.change(rows(config.VirtualServices, w2.virtualService(0, fmt.Sprint("route-", n)))) })
	run("rule", func(n int) {
		f.change(rows(config.DestinationRules, w2.rule(10+10*(n%5))))
	})
	run("service more and less", func(int) {
		more := rows(state.Services, w2.service(w2.services))
		f.change(more)
		less := rows(state.Services)
		less.Deletes = []string{more.Upserts[0].Key}
		f.change(less)
	})
}
