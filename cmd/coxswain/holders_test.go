package main

import (
	"encoding/json"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"
)

// TestLeaves: a value is found where it stands as it is, and nowhere else.
func TestLeaves(t *testing.T) {
	payload, err := proto.Marshal(&networking.VirtualService{
		Hosts: []string{"cart.shop", "cart"},
		Http: []*networking.HTTPRoute{{
			Timeout: durationpb.New(5e9), Retries: &networking.HTTPRetry{Attempts: 5},
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "cart"}, Weight: 5}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := fieldsIn("networking.istio.io/VirtualService", payload)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string][]string{
		`"5s"`:   {"spec.http[0].timeout"},
		`"cart"`: {"spec.hosts[1]", "spec.http[0].route[0].destination.host"},
		`5`:      {"spec.http[0].retries.attempts", "spec.http[0].route[0].weight"},
		`"none"`: nil,
	} {
		text, ok := scalar(json.RawMessage(value))
		if got := leaves(spec, text); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v", value, ok, got)
		}
	}
	for _, odd := range []string{`true`, `null`, `{}`, `[1]`, `""`, ``} {
		if text, ok := scalar(json.RawMessage(odd)); ok {
			t.Errorf("%s is looked for, as %q", odd, text)
		}
	}
	if v, err := fieldsIn("services", payload); v != nil || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := fieldsIn("networking.istio.io/VirtualService", []byte{0xff}); err == nil {
		t.Error("no error of a row that can't be read")
	}
}
