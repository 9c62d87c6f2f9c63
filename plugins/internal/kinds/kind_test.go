package kinds

import (
	"slices"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

func TestTablesAreSortedAndKnown(t *testing.T) {
	if !slices.IsSorted(Tables()) {
		t.Errorf("not sorted: %v", Tables())
	}
	for _, k := range All() {
		if got, ok := Lookup(k.Group() + "/" + k.Name()); !ok || got.Table != k.Table {
			t.Errorf("Lookup(%s) = %v, %v", k.Table, got, ok)
		}
		if name := string(k.New().ProtoReflect().Descriptor().Name()); name != k.Name() {
			t.Errorf("%s has message %s", k.Table, name)
		}
	}
}

func TestRowCarriesSpec(t *testing.T) {
	spec := &networking.VirtualService{Hosts: []string{"reviews"}}
	payload, err := Encode(spec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode[*networking.VirtualService](&pb.Row{Key: "a/b", Payload: payload})
	if err != nil || !proto.Equal(got, spec) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := Decode[*networking.Gateway](&pb.Row{Key: "a/b", Payload: []byte{0xff}}); err == nil {
		t.Error("garbage decoded")
	}
}
