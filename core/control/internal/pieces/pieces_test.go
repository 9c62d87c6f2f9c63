package pieces

import (
	"fmt"
	udpa "github.com/cncf/xds/go/udpa/type/v1"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/view"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	buffer "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	fault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	lua "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	rbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func pack(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	out, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func bodyOf(t *testing.T, typeURL, name string, m proto.Message) *view.Body {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return view.NewBody(typeURL, name, b, 0)
}

// hosts are a route configuration: NAME, or NAME=DOMAIN.
func hosts(t *testing.T, words ...string) *view.Body {
	t.Helper()
	m := &routev3.RouteConfiguration{Name: "r"}
	for _, w := range words {
		name, domain, _ := strings.Cut(w, "=")
		m.VirtualHosts = append(m.VirtualHosts, &routev3.VirtualHost{Name: name, Domains: []string{name + domain}})
	}
	return bodyOf(t, RouteConfiguration, "r", m)
}

// chains are a listener: CHAIN:FILTER+FILTER…, where a filter is lua, fault, buffer, rbac or
// router, and one that ends with ' is another one of its kind.
func chains(t *testing.T, words ...string) *view.Body {
	t.Helper()
	m := &listenerv3.Listener{Name: "l"}
	for _, w := range words {
		name, filters, _ := strings.Cut(w, ":")
		h := &hcmv3.HttpConnectionManager{StatPrefix: "s"}
		for f := range strings.SplitSeq(filters, "+") {
			kind, other := strings.CutSuffix(f, "'")
			h.HttpFilters = append(h.HttpFilters,
				&hcmv3.HttpFilter{Name: kind, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(t, filter(kind, other))}})
		}
		m.FilterChains = append(m.FilterChains, &listenerv3.FilterChain{
			Name: name, FilterChainMatch: &listenerv3.FilterChainMatch{ServerNames: []string{name}},
			Filters: []*listenerv3.Filter{{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(t, h)}}},
		})
	}
	return bodyOf(t, Listener, "l", m)
}

func filter(kind string, other bool) proto.Message {
	n := uint32(1)
	if other {
		n = 2
	}
	switch kind {
	case "lua":
		return &lua.Lua{StatPrefix: fmt.Sprint(n)}
	case "fault":
		return &fault.HTTPFault{MaxActiveFaults: wrapperspb.UInt32(n)}
	case "buffer":
		return &buffer.Buffer{MaxRequestBytes: wrapperspb.UInt32(n)}
	case "rbac":
		return &rbac.RBAC{RulesStatPrefix: fmt.Sprint(n)}
	case "router":
		return &router.Router{SuppressEnvoyHeaders: other}
	}
	panic(kind)
}

// said spells a resource out as hosts and chains take it; a chain without filters is closed.
func said(t *testing.T, typeURL string, b *view.Body) (out []string) {
	t.Helper()
	r := read(typeURL, b, nil)
	for _, key := range r.order {
		if h := r.hosts[key]; h != nil {
			if d := strings.TrimPrefix(h.Domains[0], h.Name); d != "" {
				key += "=" + d
			}
			out = append(out, key)
			continue
		}
		c := r.chains[key]
		if len(c.Filters) == 0 {
			out = append(out, key+": closed")
			continue
		}
		var filters []string
		for _, f := range c.hcm.HttpFilters {
			word := f.Name
			if proto.Equal(f.GetTypedConfig(), pack(t, filter(f.Name, true))) {
				word += "'"
			}
			filters = append(filters, word)
		}
		out = append(out, key+":"+strings.Join(filters, "+"))
	}
	return out
}

// find runs a search with a client that refuses what refuses says, and returns what is bad, what
// the client has in the end, and how often it was asked.
func find(t *testing.T, typeURL string, now, before *view.Body, refuses func([]string) bool) (bad []string, left []string, asked int) {
	t.Helper()
	s := NewStore().Of(typeURL).Search(now, before, nil)
	if s == nil {
		t.Fatal("it can't be taken apart")
	}
	for !s.Ended() {
		if asked++; asked > 1000 {
			t.Fatal("it does not end")
		}
		if refuses(said(t, typeURL, s.Body())) {
			s.Refused()
		} else {
			s.Accepted()
		}
	}
	for _, p := range s.Bad() {
		bad = append(bad, p.String())
	}
	slices.Sort(bad)
	return bad, said(t, typeURL, s.Body()), asked
}

func has(words ...string) func([]string) bool {
	return func(all []string) bool {
		return slices.ContainsFunc(all, func(s string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
		})
	}
}

// TestSearch: the pieces that a client refuses are found, and it has all others.
func TestSearch(t *testing.T) {
	for name, tt := range map[string]struct {
		typeURL     string
		now, before *view.Body
		refuses     func([]string) bool
		bad, left   []string
	}{
		"one host of three, nothing before": {
			RouteConfiguration, hosts(t, "a", "b=bad", "c"), nil, has("=bad"), []string{"virtual host b"}, []string{"a", "c"},
		},
		"a host that was there before": {
			RouteConfiguration, hosts(t, "a", "b=bad", "c=new"), hosts(t, "a", "b", "c"), has("=bad"), []string{"virtual host b"}, []string{"a", "b", "c=new"},
		},
		"a host alone": {RouteConfiguration, hosts(t, "a=bad"), hosts(t, "a"), has("=bad"), []string{"virtual host a"}, []string{"a"}},
		"two of five": {
			RouteConfiguration, hosts(t, "a=bad", "b", "c", "d=bad", "e"), nil, has("=bad"),
			[]string{"virtual host a", "virtual host d"}, []string{"b", "c", "e"},
		},
		"two that can't be together": {
			RouteConfiguration, hosts(t, "a=1", "b", "c=1"), nil,
			func(all []string) bool { return slices.Contains(all, "a=1") && slices.Contains(all, "c=1") }, []string{"virtual host c"}, []string{"a=1", "b"},
		},
		"everything":   {RouteConfiguration, hosts(t, "a", "b"), nil, func([]string) bool { return true }, []string{"the resource"}, nil},
		"nothing more": {RouteConfiguration, hosts(t, "a", "b"), nil, func([]string) bool { return false }, nil, []string{"a", "b"}},
		"a chain, nothing before": {
			Listener, chains(t, "x:router", "y:rbac'+router"), nil, has("rbac'"), []string{"filter chain y"}, []string{"x:router", "y: closed"},
		},
		"a chain that was there before": {
			Listener, chains(t, "x:router'", "y:rbac'+router"), chains(t, "x:router", "y:rbac+router"), has("rbac'"),
			[]string{"filter chain y"}, []string{"x:router'", "y:rbac+router"},
		},
		"a filter that may be left out": {
			Listener, chains(t, "x:rbac+lua'+router", "y:lua+router"), nil, has("lua'"),
			[]string{"filter lua of filter chain x"}, []string{"x:rbac+router", "y:lua+router"},
		},
		"a filter as it was, beside one that is enforced": {
			Listener, chains(t, "x:rbac'+fault'+router"), chains(t, "x:rbac+fault+router"), has("fault'"),
			[]string{"filter fault of filter chain x"}, []string{"x:rbac'+fault+router"},
		},
		"two filters of three": {
			Listener, chains(t, "x:lua'+fault+buffer'+router"), nil, has("lua'", "buffer'"),
			[]string{"filter buffer of filter chain x", "filter lua of filter chain x"}, []string{"x:fault+router"},
		},
		"code that stands where it can decide": {
			Listener, chains(t, "x:lua'+rbac+router", "y:router"), nil, has("lua'"), []string{"filter chain x"}, []string{"x: closed", "y:router"},
		},
		"a match that is bad": {
			Listener, chains(t, "x:router", "y:router"), nil, func(all []string) bool { return has("y")(all) },
			[]string{"filter chain y"}, []string{"x:router"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad, left, _ := find(t, tt.typeURL, tt.now, tt.before, tt.refuses)
			if diff := cmp.Diff(tt.bad, bad); diff != "" {
				t.Error("bad:", diff)
			}
			if slices.Equal(bad, []string{"the resource"}) {
				return // the client has what it had
			}
			if diff := cmp.Diff(tt.left, left); diff != "" {
				t.Error("left:", diff)
			}
		})
	}
}

// TestSearchIsShort: of many hosts some are found with few questions, in random resources exactly
// those that are bad, and a client that says anything at random ends it soon.
func TestSearchIsShort(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		n := 1 + rnd.IntN(1000)
		names, want := make([]string, n), []string{}
		for i := range names {
			names[i] = fmt.Sprintf("h%03d", i)
			if len(want) < 3 && rnd.IntN(n) < 2 {
				want = append(want, "virtual host "+names[i])
				names[i] += "=bad"
			}
		}
		now := hosts(t, names...)
		bad, _, asked := find(t, RouteConfiguration, now, nil, has("=bad"))
		if len(want) > 0 && !slices.Equal(bad, want) {
			t.Fatalf("of %d: %v, want %v", n, bad, want)
		}
		if asked > mostTrials+2 {
			t.Errorf("of %d: %d questions for %d", n, asked, len(want))
		}
		if _, _, asked := find(t, RouteConfiguration, now, nil, func([]string) bool { return rnd.IntN(2) == 0 }); asked > mostTrials+3 {
			t.Errorf("at random: %d questions", asked)
		}
	}
}

// TestOnePiece: what can't be taken apart is refused as a whole.
func TestOnePiece(t *testing.T) {
	for name, tt := range map[string]struct {
		typeURL string
		body    *view.Body
	}{
		"a cluster":        {Cluster, bodyOf(t, Cluster, "c", &clusterv3.Cluster{Name: "c"})},
		"no message":       {Listener, view.NewBody(Listener, "l", []byte("\xff"), 0)},
		"absent":           {Listener, view.Absent("l")},
		"two of one name":  {RouteConfiguration, hosts(t, "a", "a=2")},
		"without a name":   {RouteConfiguration, hosts(t, "=x")},
		"too large":        {RouteConfiguration, hosts(t, "a="+strings.Repeat("x", mostBytes))},
		"nothing in it":    {RouteConfiguration, hosts(t)},
		"too many, listed": {RouteConfiguration, hosts(t, strings.Fields(strings.Repeat("h ", mostPieces+1))...)},
	} {
		if s := NewStore().Of(tt.typeURL).Search(tt.body, nil, nil); s != nil {
			t.Errorf("%s is taken apart", name)
		}
	}
}

// TestHas: a piece is known by its name, wherever it stands: of what a patch made it is asked in
// what the generator did.
func TestHas(t *testing.T) {
	from, patched := chains(t, "a:lua+router", "b:router"), chains(t, "new:router", "a:lua+fault+router", "b:router'")
	l, r := NewStore().Of(Listener), NewStore().Of(RouteConfiguration)
	for _, tt := range []struct {
		of    Piece
		has   bool
		place int
	}{
		{Piece{Chain: "a"}, true, 1}, {Piece{Chain: "b"}, true, 2}, {Piece{Chain: "new"}, false, 0},
		{Piece{Chain: "a", Filter: "lua"}, true, 1}, {Piece{Chain: "a", Filter: "fault"}, false, 1},
		{Piece{Chain: "new", Filter: "router"}, false, 0}, {Whole, true, 0},
	} {
		if !l.Has(patched, tt.of) {
			t.Errorf("what was patched has no %s", tt.of)
		}
		if has, place := l.Has(from, tt.of), l.Place(from, tt.of); has != tt.has || place != tt.place {
			t.Errorf("%s: %v, at %d", tt.of, has, place)
		}
	}
	if hs := hosts(t, "a"); !r.Has(hs, Piece{Host: "a"}) || r.Has(hs, Piece{Host: "b"}) || r.Has(nil, Whole) || r.Has(view.Absent("r"), Whole) {
		t.Error("of virtual hosts others are there")
	}
}

// TestHoldable: for others only pieces are held that decide nothing.
func TestHoldable(t *testing.T) {
	socket := &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: pack(t, &tls.UpstreamTlsContext{Sni: "a"})}}
	cluster := func(edit func(*clusterv3.Cluster)) *view.Body {
		c := &clusterv3.Cluster{Name: "c", TransportSocket: socket}
		edit(c)
		return bodyOf(t, Cluster, "c", c)
	}
	host := func(edit func(*routev3.VirtualHost)) *view.Body {
		h := &routev3.VirtualHost{Name: "h", Domains: []string{"h"}, Routes: []*routev3.Route{{
			Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}, Action: &routev3.Route_Route{Route: &routev3.RouteAction{}},
		}}}
		edit(h)
		return bodyOf(t, RouteConfiguration, "r", &routev3.RouteConfiguration{Name: "r", VirtualHosts: []*routev3.VirtualHost{h}})
	}
	none, aHost := func(*clusterv3.Cluster) {}, Piece{Host: "h"}
	plain := host(func(*routev3.VirtualHost) {})
	for name, tt := range map[string]struct {
		typeURL     string
		now, before *view.Body
		p           Piece
		want        bool
	}{
		"a cluster's timeout":    {Cluster, cluster(func(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(1) }), cluster(none), Whole, true},
		"a cluster's TLS":        {Cluster, cluster(func(c *clusterv3.Cluster) { c.TransportSocket = nil }), cluster(none), Whole, false},
		"a cluster, none before": {Cluster, cluster(none), nil, Whole, false},
		"a whole listener":       {Listener, chains(t, "x:router'"), chains(t, "x:router"), Whole, false},
		"a whole configuration":  {RouteConfiguration, hosts(t, "a=1"), hosts(t, "a"), Whole, false},
		"another type":           {"type.googleapis.com/x.Y", hosts(t, "a"), hosts(t, "a"), Whole, false},
		"a host's domain":        {RouteConfiguration, host(func(h *routev3.VirtualHost) { h.Domains = []string{"i"} }), plain, aHost, true},
		"a host that is new":     {RouteConfiguration, plain, hosts(t, "a"), aHost, true},
		"a host's TLS":           {RouteConfiguration, host(func(h *routev3.VirtualHost) { h.RequireTls = routev3.VirtualHost_ALL }), plain, aHost, false},
		"a host's rate limits":   {RouteConfiguration, host(func(h *routev3.VirtualHost) { h.RateLimits = []*routev3.RateLimit{{}} }), plain, aHost, false},
		"a route's rate limits": {
			RouteConfiguration,
			host(func(h *routev3.VirtualHost) { h.Routes[0].GetRoute().RateLimits = []*routev3.RateLimit{{}} }),
			plain, aHost, false,
		},
		"a header that is erased": {
			RouteConfiguration,
			host(func(h *routev3.VirtualHost) { h.Routes[0].RequestHeadersToRemove = []string{"x-user"} }), plain,
			aHost, false,
		},
		"a route's policy": {RouteConfiguration, host(func(h *routev3.VirtualHost) {
			h.Routes[0].TypedPerFilterConfig = map[string]*anypb.Any{"rbac": pack(t, &rbac.RBACPerRoute{})}
		}), plain, aHost, false},
		"a share's policy": {RouteConfiguration, host(func(h *routev3.VirtualHost) {
			h.Routes[0].GetRoute().ClusterSpecifier = &routev3.RouteAction_WeightedClusters{
				WeightedClusters: &routev3.WeightedCluster{Clusters: []*routev3.WeightedCluster_ClusterWeight{
					{Name: "c", TypedPerFilterConfig: map[string]*anypb.Any{"rbac": pack(t, &rbac.RBACPerRoute{})}},
				}},
			}
		}), plain, aHost, false},
		"a route's fault": {RouteConfiguration, host(func(h *routev3.VirtualHost) {
			h.Routes[0].TypedPerFilterConfig = map[string]*anypb.Any{"fault": pack(t, &fault.HTTPFault{})}
		}), plain, aHost, true},
		"a filter on the list":    {Listener, chains(t, "x:fault'+router"), chains(t, "x:fault+router"), Piece{Chain: "x", Filter: "fault"}, true},
		"a filter that is new":    {Listener, chains(t, "x:lua+router"), chains(t, "x:router"), Piece{Chain: "x", Filter: "lua"}, true},
		"a filter that decides":   {Listener, chains(t, "x:rbac'+router"), chains(t, "x:rbac+router"), Piece{Chain: "x", Filter: "rbac"}, false},
		"code before it":          {Listener, chains(t, "x:lua'+rbac+router"), chains(t, "x:rbac+lua+router"), Piece{Chain: "x", Filter: "lua"}, false},
		"code that was before it": {Listener, chains(t, "x:rbac+lua'+router"), chains(t, "x:lua+rbac+router"), Piece{Chain: "x", Filter: "lua"}, false},
		"a chain's fault":         {Listener, chains(t, "x:rbac+fault'+router"), chains(t, "x:rbac+fault+router"), Piece{Chain: "x"}, true},
		"a chain's policy":        {Listener, chains(t, "x:rbac'+router"), chains(t, "x:rbac+router"), Piece{Chain: "x"}, false},
		"a chain that is new":     {Listener, chains(t, "x:router", "y:router"), chains(t, "x:router"), Piece{Chain: "y"}, false},
	} {
		if got := NewStore().Of(tt.typeURL).Holdable(tt.now, tt.before, tt.p); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestEachFilterIsClassified: each HTTP filter that Envoy's API has is on one of the lists.
func TestEachFilterIsClassified(t *testing.T) {
	const of = "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/"
	out, err := exec.CommandContext(t.Context(), "go", "list", of+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, of), "/")
		there[name] = true
		n := 0
		for _, list := range []map[string]bool{spareable, coded, deciding} {
			if list[name] {
				n++
			}
		}
		if n != 1 {
			t.Errorf("HTTP filter %s is on %d lists: say in list.go whether a client may do without it", name, n)
		}
	}
	if len(there) < 60 {
		t.Errorf("%d filters", len(there))
	}
	for _, list := range []map[string]bool{spareable, coded, deciding} {
		for name := range list {
			if !there[name] {
				t.Errorf("there is no HTTP filter %s", name)
			}
		}
	}
	filterOf := func(typeURL string) *hcmv3.HttpFilter {
		return &hcmv3.HttpFilter{ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: &anypb.Any{TypeUrl: typeURL}}}
	}
	const own, unknown = "type.googleapis.com/acme.Stats", "type.googleapis.com/envoy.extensions.filters.http.brand_new.v3.New"
	wrapped := &hcmv3.HttpFilter{ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(t, &udpa.TypedStruct{TypeUrl: own})}}
	for _, tt := range []struct {
		name    string
		filters []*hcmv3.HttpFilter
		want    bool
	}{
		{"one that nobody has classified", []*hcmv3.HttpFilter{filterOf(unknown)}, false},
		{"one that somebody has", []*hcmv3.HttpFilter{filterOf(own)}, true},
		{"the same as a struct", []*hcmv3.HttpFilter{wrapped}, true},
		{"code before that", []*hcmv3.HttpFilter{filterOf("type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"), wrapped}, true},
		{
			"code before one that nobody has classified",
			[]*hcmv3.HttpFilter{filterOf("type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"), filterOf(unknown)},
			false,
		},
	} {
		if got := (more{"acme.Stats": true}).spared(tt.filters, 0); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestEachFieldIsClassified: of each message that may be held it is said of each field whether it
// decides.
func TestEachFieldIsClassified(t *testing.T) {
	for _, tt := range []struct {
		m             proto.Message
		decide, other string
	}{
		{
			&clusterv3.Cluster{},
			"name transport_socket transport_socket_matches transport_socket_matcher filters upstream_bind_config " +
				"upstream_config typed_extension_protocol_options",
			`alt_stat_name stats_matcher type cluster_type eds_cluster_config connect_timeout per_connection_buffer_limit_bytes per_connection_buffer_high_watermark_timeout
			lb_policy load_assignment health_checks max_requests_per_connection circuit_breakers upstream_http_protocol_options common_http_protocol_options
			http_protocol_options http2_protocol_options dns_refresh_rate dns_jitter dns_failure_refresh_rate respect_dns_ttl dns_lookup_family dns_resolvers
			use_tcp_for_dns_lookups dns_resolution_config typed_dns_resolver_config wait_for_warm_on_init outlier_detection cleanup_interval lb_subset_config
			ring_hash_lb_config maglev_lb_config original_dst_lb_config least_request_lb_config round_robin_lb_config common_lb_config metadata protocol_selection
			upstream_connection_options close_connections_on_host_health_failure ignore_health_on_host_removal load_balancing_policy lrs_server
			lrs_report_endpoint_metrics track_timeout_budgets track_cluster_stats preconnect_policy connection_pool_per_downstream_connection queuing_policies`,
		},
		{&routev3.VirtualHost{}, "require_tls rate_limits request_headers_to_remove typed_per_filter_config",
			`name domains routes matcher virtual_clusters request_headers_to_add response_headers_to_add response_headers_to_remove cors include_request_attempt_count
			include_attempt_count_in_response retry_policy retry_policy_typed_config hedge_policy include_is_timeout_retry_header per_request_buffer_limit_bytes
			request_body_buffer_limit request_mirror_policies metadata route_specifiers`},
	} {
		decide, other := strings.Fields(tt.decide), strings.Fields(tt.other)
		ds := tt.m.ProtoReflect().Descriptor().Fields()
		for i := range ds.Len() {
			if name := string(ds.Get(i).Name()); slices.Contains(decide, name) == slices.Contains(other, name) {
				t.Errorf("%s of %s: hold.go and this test are to say whether it decides", name, tt.m.ProtoReflect().Descriptor().Name())
			}
		}
	}
}

// TestNothingIsMissingMeanwhile: while pieces are looked for a client that has something is never
// sent less: a host or chain of another name is the same by its domains or its match, and one that
// is gone stays until that is known. A client that has nothing gets all but filters, and what
// others refuse, first.
func TestNothingIsMissingMeanwhile(t *testing.T) {
	renamed := bodyOf(t, RouteConfiguration, "r", &routev3.RouteConfiguration{Name: "r", VirtualHosts: []*routev3.VirtualHost{
		{Name: "new", Domains: []string{"a"}}, {Name: "bad", Domains: []string{"bad"}}, {Name: "c", Domains: []string{"c"}},
	}})
	domains := func(t *testing.T, b *view.Body) (out []string) {
		for _, h := range read(RouteConfiguration, b, nil).routes.VirtualHosts {
			out = append(out, h.Domains...)
		}
		return out
	}
	s := NewStore().Of(RouteConfiguration).Search(renamed, hosts(t, "a", "b", "c"), nil)
	for !s.Ended() {
		now := domains(t, s.Body())
		if !slices.Contains(now, "a") || !slices.Contains(now, "c") {
			t.Errorf("it is sent %v", now)
		}
		if slices.Contains(now, "bad") {
			s.Refused()
		} else {
			s.Accepted()
		}
	}
	if diff := cmp.Diff([]string{"a", "c"}, domains(t, s.Body())); diff != "" {
		t.Error(diff)
	}

	book := NewStore().Of(Listener)
	s = book.Search(chains(t, "x:rbac+lua'+router", "y:router"), nil, nil)
	if diff := cmp.Diff([]string{"x:rbac+router", "y:router"}, said(t, Listener, s.Body())); diff != "" {
		t.Error(diff)
	}
	if s.Accepted(); !s.Ended() || len(s.Bad()) != 1 {
		t.Errorf("%v", s.Bad())
	}
	s = book.Search(chains(t, "x:router", "y:rbac'+router", "z:router"), nil, []Piece{{Chain: "y"}, {Chain: "z"}})
	if diff := cmp.Diff([]string{"x:router", "y: closed", "z: closed"}, said(t, Listener, s.Body())); diff != "" {
		t.Error(diff)
	}
	for s.Accepted(); !s.Ended(); {
		if has("rbac'")(said(t, Listener, s.Body())) {
			s.Refused()
		} else {
			s.Accepted()
		}
	}
	if diff := cmp.Diff([]string{"x:router", "y: closed", "z:router"}, said(t, Listener, s.Body())); diff != "" {
		t.Error("a piece that others refuse is left out for a client that takes it: ", diff)
	}
}

// TestStoreIsBounded: what can't be taken apart counts, too, so that it isn't kept for ever.
func TestStoreIsBounded(t *testing.T) {
	s := NewStore()
	for i := range 3 {
		s.bytes = mostKept // as after many others
		if b := s.Of(Cluster); b.open(bodyOf(t, Cluster, "c", &clusterv3.Cluster{Name: "c", AltStatName: fmt.Sprint(i)})) != nil {
			t.Fatal("a cluster is taken apart")
		}
		if len(s.read) != 1 {
			t.Errorf("%d are kept", len(s.read))
		}
	}
}
