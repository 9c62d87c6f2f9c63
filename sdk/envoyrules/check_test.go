package envoyrules

import (
	"strings"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func wrap(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func filters(configs ...*anypb.Any) *listener.Listener {
	chain := &listener.FilterChain{}
	for _, c := range configs {
		chain.Filters = append(chain.Filters, &listener.Filter{Name: "f", ConfigType: &listener.Filter_TypedConfig{TypedConfig: c}})
	}
	return &listener.Listener{Name: "l", FilterChains: []*listener.FilterChain{chain}}
}

func TestCheck(t *testing.T) {
	good := wrap(t, &tcp.TcpProxy{StatPrefix: "s", ClusterSpecifier: &tcp.TcpProxy_Cluster{Cluster: "c"}})
	bad := wrap(t, &tcp.TcpProxy{ClusterSpecifier: &tcp.TcpProxy_Cluster{Cluster: "c"}})
	deep := wrap(t, &hcm.HttpConnectionManager{
		StatPrefix: "s", RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{RouteConfigName: "r"}},
		HttpFilters: []*hcm.HttpFilter{{Name: "x", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: bad}}},
	})
	for _, c := range []struct {
		name string
		m    proto.Message
		// shallow and all are parts of what Check and CheckAll say; empty: nothing is wrong.
		shallow, all string
	}{
		{"no rules", wrapperspb.Bool(true), "", ""},
		{"cluster", &cluster.Cluster{Name: "c"}, "", ""},
		{"a field", &cluster.Cluster{Name: "c", ConnectTimeout: durationpb.New(-1)}, "ConnectTimeout", "ConnectTimeout"},
		{"wrapped", filters(good), "", ""},
		{
			"wrapped and wrong", filters(good, bad), "",
			"filter_chains[0].filters[1].typed_config: envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy: invalid TcpProxy.StatPrefix",
		},
		{"twice", filters(deep), "", "filter_chains[0].filters[0].typed_config.http_filters[0].typed_config"},
		{"in a map", &cluster.Cluster{Name: "c", TypedExtensionProtocolOptions: map[string]*anypb.Any{"o": bad}}, "", `typed_extension_protocol_options["o"]`},
		{"no message", filters(&anypb.Any{TypeUrl: good.TypeUrl, Value: []byte{0xff}}), "", "filters[0].typed_config"},
		{"of an unknown type", filters(&anypb.Any{TypeUrl: "type.googleapis.com/example.Unknown", Value: []byte{1}}), "", ""},
		{"nothing wrapped", filters(&anypb.Any{}), "", ""},
	} {
		says(t, c.name+", shallow", Check(c.m), c.shallow)
		says(t, c.name+", all", CheckAll(c.m), c.all)
	}
}

func says(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}
