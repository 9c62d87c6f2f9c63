// Package bootstrap makes the bootstrap of an Envoy that gets everything else from a control plane,
// as Istio's agent would, but without an agent.
package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	internalv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// Proxy types.
const (
	Sidecar = "sidecar"
	Router  = "router"
)

// xDS protocols.
const (
	SotW  = "sotw"
	Delta = "delta"
)

// xdsCluster is the name that Istio's bootstrap has for it.
const xdsCluster = "xds-grpc"

// header is the form of a request header's name (RFC 9110, section 5.1), in HTTP/2's lower case.
var header = regexp.MustCompile("^[a-z0-9!#$%&'*+.^_`|~-]+$")

// Config is what an Envoy is to be told.
type Config struct {
	// Type is Sidecar or Router.
	Type            string
	Name, Namespace string
	// IP is the proxy's address: services' endpoints with it are this proxy's own.
	IP string
	// Domain is the cluster's DNS domain, such as cluster.local.
	Domain string
	Labels map[string]string
	// ClusterID, Network and Locality (REGION/ZONE/SUBZONE) say where it is; Locality and Network
	// may be empty.
	ClusterID, Network, Locality string
	// IstioVersion decides which answers a proxy understands.
	IstioVersion string
	// Interception is REDIRECT, TPROXY or NONE; empty: not said.
	Interception string
	// Metadata comes in addition, and wins.
	Metadata map[string]any
	// Headers go with each stream to the control plane, by names in lower case, such as x-api-key.
	Headers map[string]string
	// RTDS is the name of a runtime layer to ask for; empty: none.
	RTDS string
	// XDS is the control plane's address, HOST:PORT or unix:PATH; Protocol is SotW or Delta.
	XDS, Protocol string
	// TLS of the way there.
	TLS TLS
	// Certificates of the workload.
	Certificates Certificates
	// Admin is the address of Envoy's own admin pages, HOST:PORT; empty: none.
	Admin string
}

// New returns the bootstrap as JSON. An error names the field of Config at fault.
func New(c Config) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	node, err := c.Node()
	if err != nil {
		return nil, err
	}
	clusters, err := c.clusters()
	if err != nil {
		return nil, err
	}
	b := &bootstrapv3.Bootstrap{
		Node:             node,
		DynamicResources: c.dynamic(),
		StaticResources:  &bootstrapv3.Bootstrap_StaticResources{Clusters: clusters},
	}
	c.Certificates.static(b)
	b.LayeredRuntime = runtimeOf(c.RTDS)
	if b.BootstrapExtensions, err = internalListeners(); err != nil {
		return nil, err
	}
	if c.Admin != "" {
		a, err := address(c.Admin)
		if err != nil {
			return nil, fmt.Errorf("admin address: %w", err)
		}
		b.Admin = &bootstrapv3.Admin{Address: a}
	}
	return indent(b)
}

func (c Config) check() error {
	switch {
	case c.Type != Sidecar && c.Type != Router:
		return fmt.Errorf("type: %q is neither %s nor %s", c.Type, Sidecar, Router)
	case c.Protocol != SotW && c.Protocol != Delta:
		return fmt.Errorf("protocol: %q is neither %s nor %s", c.Protocol, SotW, Delta)
	case c.Name == "" || c.Namespace == "":
		return errors.New("name and namespace must not be empty")
	case net.ParseIP(c.IP) == nil:
		return fmt.Errorf("ip: %q is no IP address", c.IP)
	case strings.Count(c.Locality, "/") > 2:
		return fmt.Errorf("locality: %q is not REGION/ZONE/SUBZONE", c.Locality)
	}
	for name := range c.Headers {
		if !header.MatchString(name) || strings.HasSuffix(name, "-bin") {
			return fmt.Errorf("header: %q is no header's name in lower case, such as x-api-key", name)
		}
	}
	if err := errors.Join(c.TLS.check(), c.Certificates.check()); err != nil {
		return err
	}
	for _, part := range []string{c.Name, c.Namespace, c.Domain} {
		if strings.Contains(part, "~") {
			return fmt.Errorf("%q: ~ separates the parts of a node id and can't be in one", part)
		}
	}
	return nil
}

// Node returns who the proxy is: an id as Istio's agent writes it,
// TYPE~IP~NAME.NAMESPACE~NAMESPACE.svc.DOMAIN.
func (c Config) Node() (*corev3.Node, error) {
	metadata, err := c.metadata()
	if err != nil {
		return nil, err
	}
	n := &corev3.Node{
		Id:       fmt.Sprintf("%s~%s~%s.%s~%s.svc.%s", c.Type, c.IP, c.Name, c.Namespace, c.Namespace, c.Domain),
		Cluster:  c.service() + "." + c.Namespace,
		Metadata: metadata,
	}
	if c.Locality != "" {
		parts := append(strings.Split(c.Locality, "/"), "", "")
		n.Locality = &corev3.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
	}
	return n, nil
}

// service is the name that the proxy's statistics and traces carry.
func (c Config) service() string {
	for _, label := range []string{"service.istio.io/canonical-name", "app"} {
		if v := c.Labels[label]; v != "" {
			return v
		}
	}
	return c.Name
}

func (c Config) metadata() (*structpb.Struct, error) {
	labels := make(map[string]any, len(c.Labels))
	for k, v := range c.Labels {
		labels[k] = v
	}
	m := map[string]any{
		"NAME":          c.Name,
		"NAMESPACE":     c.Namespace,
		"LABELS":        labels,
		"INSTANCE_IPS":  c.IP,
		"CLUSTER_ID":    c.ClusterID,
		"ISTIO_VERSION": c.IstioVersion,
		// Nobody serves this proxy's certificates on a socket of its own.
		"COXSWAIN_NO_AGENT": "true",
		// What runtimeOf says, for `coxswain analyze --live`.
		"COXSWAIN_REGEX_PROGRAM": float64(envoyrules.MaxProgram),
	}
	if c.Certificates.Files != "" {
		m["COXSWAIN_SECRETS"] = c.Certificates.source()
	}
	if c.Interception != "" {
		m["INTERCEPTION_MODE"] = c.Interception
	}
	if c.Network != "" {
		m["NETWORK"] = c.Network
	}
	maps.Copy(m, c.Metadata)
	s, err := structpb.NewStruct(m)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return s, nil
}

// overADS is the source of what comes over the one stream.
func overADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
}

// runtimeOf are the runtime settings: those of Istio's bootstraps, which its resources rely on,
// then those of a layer that is asked for (RTDS; empty: none), under what Envoy's admin page sets.
func runtimeOf(layer string) *bootstrapv3.LayeredRuntime {
	out := &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{{
		Name: "static",
		LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: &structpb.Struct{Fields: map[string]*structpb.Value{
			// How large regular expressions may become.
			"re2.max_program_size.error_level": structpb.NewNumberValue(envoyrules.MaxProgram),
			// Paths with a fragment are cut rather than refused.
			"envoy.reloadable_features.http_reject_path_with_fragment": structpb.NewBoolValue(false),
			// Load balancers see each change of endpoints.
			"envoy.reloadable_features.coalesce_lb_rebuilds_on_batch_update": structpb.NewBoolValue(false),
			// Overload managers that patches bring count what is allocated.
			"envoy.reloadable_features.fixed_heap_use_allocated": structpb.NewBoolValue(true),
			// Listeners hand connections on by their original destination.
			"envoy.deprecated_features:envoy.config.listener.v3.Listener.hidden_envoy_deprecated_use_original_dst": structpb.NewBoolValue(true),
		}}},
	}}}
	if layer != "" {
		out.Layers = append(out.Layers, &bootstrapv3.RuntimeLayer{Name: layer, LayerSpecifier: &bootstrapv3.RuntimeLayer_RtdsLayer_{
			RtdsLayer: &bootstrapv3.RuntimeLayer_RtdsLayer{Name: layer, RtdsConfig: overADS()},
		}})
	}
	admin := &bootstrapv3.RuntimeLayer_AdminLayer_{AdminLayer: &bootstrapv3.RuntimeLayer_AdminLayer{}}
	out.Layers = append(out.Layers, &bootstrapv3.RuntimeLayer{Name: "admin", LayerSpecifier: admin})
	return out
}

// internalListeners lets listeners have addresses within Envoy, as in Istio's bootstraps.
func internalListeners() ([]*corev3.TypedExtensionConfig, error) {
	config, err := anypb.New(&internalv3.InternalListener{BufferSizeKb: wrapperspb.UInt32(64)})
	if err != nil {
		return nil, err
	}
	return []*corev3.TypedExtensionConfig{{Name: "envoy.bootstrap.internal_listener", TypedConfig: config}}, nil
}

// initial returns the headers of each stream to the control plane, sorted.
func (c Config) initial() (all []*corev3.HeaderValue) {
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		all = append(all, &corev3.HeaderValue{Key: name, Value: c.Headers[name]})
	}
	return all
}

func (c Config) dynamic() *bootstrapv3.Bootstrap_DynamicResources {
	ads := overADS()
	api := corev3.ApiConfigSource_GRPC
	if c.Protocol == Delta {
		api = corev3.ApiConfigSource_DELTA_GRPC
	}
	return &bootstrapv3.Bootstrap_DynamicResources{
		CdsConfig: ads,
		LdsConfig: ads,
		AdsConfig: &corev3.ApiConfigSource{
			ApiType:                   api,
			TransportApiVersion:       corev3.ApiVersion_V3,
			SetNodeOnFirstMessageOnly: true,
			GrpcServices: []*corev3.GrpcService{{
				InitialMetadata: c.initial(),
				TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
					EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: xdsCluster},
				},
			}},
		},
	}
}

// clusters returns the only one that isn't the control plane's to say: the control plane.
func (c Config) clusters() ([]*clusterv3.Cluster, error) {
	a, err := address(c.XDS)
	if err != nil {
		return nil, fmt.Errorf("xDS address: %w", err)
	}
	http2, err := anypb.New(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
						ConnectionKeepalive: &corev3.KeepaliveSettings{
							Interval: durationpb.New(30 * time.Second),
							Timeout:  durationpb.New(10 * time.Second),
						},
					},
				},
			},
		},
	})
	if err != nil {
		return nil, err
	}
	socket, err := c.socket()
	if err != nil {
		return nil, err
	}
	return []*clusterv3.Cluster{{
		TransportSocket:      socket,
		Name:                 xdsCluster,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: discovery(a)},
		ConnectTimeout:       durationpb.New(time.Second),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2,
		},
		UpstreamConnectionOptions: &clusterv3.UpstreamConnectionOptions{
			TcpKeepalive: &corev3.TcpKeepalive{KeepaliveTime: wrapperspb.UInt32(300)},
		},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: xdsCluster,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{
				LbEndpoints: []*endpointv3.LbEndpoint{{
					HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: a}},
				}},
			}},
		},
	}}, nil
}

// discovery returns how a cluster finds its endpoint: names have to be resolved.
func discovery(a *corev3.Address) clusterv3.Cluster_DiscoveryType {
	if s := a.GetSocketAddress(); s != nil && net.ParseIP(s.Address) == nil {
		return clusterv3.Cluster_STRICT_DNS
	}
	return clusterv3.Cluster_STATIC
}

// address reads HOST:PORT or unix:PATH.
func address(s string) (*corev3.Address, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		return &corev3.Address{Address: &corev3.Address_Pipe{
			Pipe: &corev3.Pipe{Path: strings.TrimPrefix(path, "//")},
		}}, nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return nil, fmt.Errorf("%q is neither HOST:PORT nor unix:PATH", s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q has no port number from 0 to 65535", s)
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       host,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(n)},
	}}}, nil
}

// indent writes JSON that is the same for equal messages, which protojson alone doesn't promise.
func indent(b proto.Message) ([]byte, error) {
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(b)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
