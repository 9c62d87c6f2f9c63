package main

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/core/admin"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestSelector(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "namespace=shop,labels.app=web": "namespace=shop,labels.app=web", "web-1.shop": "id=*~web-1.shop~*",
		"sidecar~10.0.0.1~web-1.shop~shop.svc": "id=sidecar~10.0.0.1~web-1.shop~shop.svc", "web-1.shop,cluster=a": "id=*~web-1.shop~*,cluster=a",
	} {
		if got := selector(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestGrouped: what differs for the same proxies is together, with the fields that differ.

func TestGrouped(t *testing.T) {
	const cds = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	value := func(seconds int64) []byte {
		b, err := proto.Marshal(&clusterv3.Cluster{Name: "c", ConnectTimeout: &durationpb.Duration{Seconds: seconds}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	all := []admin.DifferentBody{
		{Type: cds, Name: "c", Before: "1", After: "2", BeforeValue: value(1), AfterValue: value(2), Proxies: []string{"a", "b"}},
		{Type: cds, Name: "d", After: "1", AfterValue: value(1), Proxies: []string{"a", "b"}},
		{Type: cds, Name: "e", Before: "1", BeforeValue: value(1), Proxies: []string{"a"}},
	}
	got := grouped(all)
	if len(got) != 2 || len(got[0].Changed) != 1 || len(got[0].Added) != 1 || len(got[1].Removed) != 1 {
		t.Fatalf("%+v", got)
	}
	if c := got[0].Changed[0].Changes; len(c) != 1 || c[0].Path != "connect_timeout" || string(c[0].Before) != `"1s"` || string(c[0].After) != `"2s"` {
		t.Errorf("%+v", c)
	}
}
