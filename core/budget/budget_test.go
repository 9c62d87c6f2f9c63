package budget

import (
	"errors"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestCheck: what can't be is refused in the words of the settings; zero is no limit, but where a
// message to a plugin sets one.
func TestCheck(t *testing.T) {
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		edit func(*Limits)
		want string
	}{
		{func(l *Limits) { l.Stream.NodeBytes = 0 }, "maxNodeBytes: 0 must be from"},
		{func(l *Limits) { l.Stream.NodeBytes = 1 << 20 }, "maxNodeBytes"},
		{func(l *Limits) { l.Stream.ExtensionBytes = 1 << 20 }, "maxExtensionBytes"},
		{func(l *Limits) { l.Stream.NameBytes = 1 << 20 }, "maxNameBytes"},
		{func(l *Limits) { l.Stream.ErrorBytes = 1 << 20 }, "maxErrorBytes"},
		{func(l *Limits) { l.Stream.Names = -1 }, "maxNamesPerStream: -1 is negative; 0 means no bound"},
		{func(l *Limits) { l.Stream.Idle = -time.Second }, "idleTimeout"},
		{func(l *Limits) { l.Peer.Unfinished = 4 << 20 }, "maxUnfinishedBytesPerPeer: 4194304 is less than twice maxRequestBytes"},
		{func(l *Limits) { l.Total.Unfinished = -1 }, "maxUnfinishedBytes"},
		{func(l *Limits) { l.Peer.Requests = -1 }, "maxRequestsPerPeer"},
		{func(l *Limits) { l.Stream.Names, l.Stream.Idle, l.Peer = 0, 0, Peer{} }, ""},
	} {
		l := Defaults()
		c.edit(&l)
		err := l.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// TestRefusal is what a client gets to see.
func TestRefusal(t *testing.T) {
	s := Defaults().Stream
	err := s.CheckNode(&core.Node{Id: "a", Cluster: strings.Repeat("x", 300<<10)})
	var r *Refusal
	if !errors.As(err, &r) || r.Limit != "maxNodeBytes" || status.Code(err) != codes.InvalidArgument {
		t.Fatal(err)
	}
	const want = "the node has 307207 bytes; maxNodeBytes is 262144: shorten its metadata in the proxy's bootstrap, or " +
		"raise the control plane's setting maxNodeBytes"
	if status.Convert(err).Message() != want {
		t.Error(err)
	}
}

// TestNodesOfProxies: what real proxies say of themselves is within the defaults: 50 KiB of
// metadata, a thousand extensions.
func TestNodesOfProxies(t *testing.T) {
	n := &core.Node{Id: "sidecar~10.0.0.1~a.b~b.svc.cluster.local", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
		"LABELS": structpb.NewStringValue(strings.Repeat("x", 50<<10)),
	}}}
	for range 1000 {
		n.Extensions = append(n.Extensions, &core.Extension{
			Name: "envoy.filters.http.set_filter_state", Category: "envoy.filters.http",
			TypeUrls: []string{"envoy.extensions.filters.http.set_filter_state.v3.Config", "envoy.extensions.filters.http.set_filter_state.v3.PerRoute"},
		})
	}
	s := Defaults().Stream
	if err := s.CheckNode(n); err != nil {
		t.Error(err)
	}
}

// TestNames: each by itself, and how many.
func TestNames(t *testing.T) {
	s := Stream{NameBytes: 10, TypeNames: 3}
	for _, c := range []struct {
		names []string
		limit string
	}{
		{nil, ""},
		{[]string{"a", "", "ün|80||x"}, ""},
		{[]string{"0123456789"}, ""},
		{[]string{"a", "0123456789x"}, "maxNameBytes"},
		{[]string{"a\x00"}, "characters"},
		{[]string{"a\u0085"}, "characters"},
		{[]string{"a\xff"}, "characters"},
		{[]string{"a", "b", "c", "d"}, "maxNamesPerType"},
	} {
		var r *Refusal
		err := s.CheckNames(c.names)
		if errors.As(err, &r); (err == nil) != (c.limit == "") || r != nil && r.Limit != c.limit {
			t.Errorf("%q: %v", c.names, err)
		}
		if err != nil && strings.ContainsFunc(err.Error(), unprintable) {
			t.Errorf("%q is said raw: %q", c.names, err)
		}
	}
}

func TestHolding(t *testing.T) {
	s := Stream{Types: 2, TypeNames: 10, Names: 15, Bytes: 1000}
	for _, c := range []struct {
		h     Holding
		limit string
	}{
		{Holding{2, 10, 15, 1000}, ""},
		{Holding{3, 1, 1, 1}, "maxTypes"},
		{Holding{1, 11, 11, 1}, "maxNamesPerType"},
		{Holding{2, 10, 16, 1}, "maxNamesPerStream"},
		{Holding{1, 1, 1, 1001}, "maxBytesPerStream"},
	} {
		var r *Refusal
		err := s.CheckHolding(c.h)
		if errors.As(err, &r); (err == nil) != (c.limit == "") || r != nil && (r.Limit != c.limit || r.Code != codes.ResourceExhausted) {
			t.Errorf("%+v: %v", c.h, err)
		}
	}
}

// TestWeigh: a node of many small values takes far more memory than bytes on the wire.
func TestWeigh(t *testing.T) {
	var values []*structpb.Value
	for range 1000 {
		values = append(values, structpb.NewNullValue())
	}
	n := &core.Node{Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewListValue(&structpb.ListValue{Values: values})}}}
	if size, weight := proto.Size(n), Weigh(n); weight < 10*size {
		t.Error(size, weight)
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a b", "a b"}, {"a\nb\x1b\u0085c", "a b  c"}, {"01234567", "01234567"}, {"0123456ü9", "0123456…"},
	} {
		if got := Line(c.in, 8); got != c.want {
			t.Errorf("%q: %q", c.in, got)
		}
	}
}
