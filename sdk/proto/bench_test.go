package proto

import (
	"fmt"
	"testing"
)

func sample() (*FromPlugin, *FromCore) {
	rows := &TableRows{Table: "endpoints"}
	for i := range 50 {
		rows.Upserts = append(rows.Upserts,
			&Row{Key: fmt.Sprintf("ns/host-%d/http/10.0.0.1:80", i), Payload: make([]byte, 120), Labels: map[string]string{"a": "b", "app": "reviews"}})
	}
	p := &FromPlugin{Change: &Change{Type: "type.googleapis.com/envoy.config.cluster.v3.Cluster", View: 7, Revision: &Revision{Epoch: 1234567, Number: 99}}}
	for i := range 50 {
		p.Change.Upserts = append(p.Change.Upserts, &Entry{Name: fmt.Sprintf("outbound|80||host-%d.ns.svc.cluster.local", i), Body: uint64(i + 5000)})
	}
	return p, &FromCore{State: &State{Revision: &Revision{Epoch: 1234567, Number: 99}, Tables: []*TableRows{rows}}}
}

func bench(b *testing.B, name string, x message, fresh func() message) {
	b.Run(name+"/append", func(b *testing.B) {
		buf := make([]byte, 0, x.Size())
		b.SetBytes(int64(x.Size()))
		b.ReportAllocs()
		for b.Loop() {
			buf = x.AppendTo(buf[:0])
		}
	})
	b.Run(name+"/size", func(b *testing.B) {
		for b.Loop() {
			_ = x.Size()
		}
	})
	enc := x.AppendTo(nil)
	b.Run(name+"/unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(enc)))
		for b.Loop() {
			if err := fresh().Unmarshal(enc); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMessages encodes and decodes what there is most of: rows and entries of views.
func BenchmarkMessages(b *testing.B) {
	p, c := sample()
	s := &Service{
		Host: "reviews.default.svc.cluster.local", Namespace: "default", Name: "reviews",
		Addresses: []string{"10.0.0.1"}, Labels: map[string]string{"app": "reviews"},
		Ports: []*Port{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}
	e := &Endpoint{Host: "reviews.default.svc.cluster.local", Namespace: "default", PortName: "http", ServicePort: 80, Address: "10.0.0.1", Port: 8080}
	bench(b, "change", p, func() message { return new(FromPlugin) })
	bench(b, "state", c, func() message { return new(FromCore) })
	bench(b, "service", s, func() message { return new(Service) })
	bench(b, "endpoint", e, func() message { return new(Endpoint) })
}
