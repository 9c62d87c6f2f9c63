package endpoint

import (
	"maps"
	"testing"
	"unsafe"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func endpointRow(key, address string, labels map[string]string) *pb.Row {
	e := pb.Endpoint{Host: "a.example", Namespace: "ns", Address: address, Port: 8080, Labels: labels}
	return &pb.Row{Key: key, Payload: e.AppendTo(nil)}
}

func TestReader(t *testing.T) {
	r := NewReader()
	parse := func(row *pb.Row) *Endpoint {
		t.Helper()
		e, err := r.Parse(row)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	one, two, other := endpointRow("1", "10.0.0.1", map[string]string{"app": "a"}),
		endpointRow("2", "10.0.0.2", map[string]string{"app": "a"}), endpointRow("3", "10.0.0.3", nil)
	a, c, b := parse(one), parse(other), parse(two)
	if parse(one) != a || parse(two) != b {
		t.Error("a row was read twice")
	}
	if unsafe.StringData(a.Host) != unsafe.StringData(b.Host) || a.Address == b.Address {
		t.Errorf("%+v and %+v share the wrong things", a, b)
	}
	if !maps.Equal(b.Labels, map[string]string{"app": "a"}) || len(c.Labels) != 0 {
		t.Errorf("labels: %v, %v", b.Labels, c.Labels)
	}
	if moved := parse(endpointRow("1", "10.0.0.9", nil)); moved.Address != "10.0.0.9" || len(moved.Labels) != 0 || a.Address != "10.0.0.1" {
		t.Errorf("after a change: %+v, before: %+v", moved, a)
	}
	if r.Forget("2"); parse(two) == b {
		t.Error("a row was not forgotten")
	}
	if _, err := r.Parse(&pb.Row{Key: "1", Payload: []byte{0x0a, 0x7f}}); err == nil {
		t.Error("a broken row was read")
	}
}
