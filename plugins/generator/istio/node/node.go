// Package node reads who a proxy is from its xDS node: Istio's four-part id and its metadata.
package node

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// Type of a proxy, the first part of its id.
type Type string

// Types that get resources from this generator.
const (
	Sidecar Type = "sidecar"
	Router  Type = "router"
)

// Node is a proxy as it describes itself.
type Node struct {
	ID        string
	Type      Type
	Name      string
	Namespace string
	// Domain is the DNS domain of its namespace, such as default.svc.cluster.local.
	Domain string
	// Addresses of the proxy, the primary first.
	Addresses []string
	Labels    map[string]string
	Locality  string
	// Cluster is what the proxy calls its service.
	Cluster  string
	Metadata Metadata
	// extensions that the proxy has; nil where it didn't say.
	extensions []string
}

// ErrBadNode says that a node can't be served.
var ErrBadNode = errors.New("bad xDS node")

// Parse reads an encoded envoy.config.core.v3.Node. extensions are the names that Envoy lists, nil
// where it lists none.
func Parse(encoded []byte, extensions []string) (*Node, error) {
	var n core.Node
	if err := proto.Unmarshal(encoded, &n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadNode, err)
	}
	return From(&n, extensions)
}

// From reads a node.
func From(n *core.Node, extensions []string) (*Node, error) {
	if n.GetId() == "" {
		return nil, fmt.Errorf("%w: missing node id: want TYPE~IP~NAME.NAMESPACE~DOMAIN", ErrBadNode)
	}
	id, ok := istio.ParseNodeID(n.Id)
	if !ok {
		return nil, fmt.Errorf(
			"%w: missing parts in the service node %q: want TYPE~IP~NAME.NAMESPACE~DOMAIN, such as sidecar~10.0.0.1~web-1.default~default.svc.cluster.local",
			ErrBadNode, n.Id,
		)
	}
	out := &Node{ID: n.Id, Type: Type(id.Type), Domain: id.Domain, Metadata: parseMetadata(n.Metadata), extensions: extensions}
	if out.Type != Sidecar && out.Type != Router {
		return nil, fmt.Errorf("%w: unknown type %q in the service node %q: want sidecar or router", ErrBadNode, id.Type, n.Id)
	}
	out.Name, out.Namespace = id.Name, cmp.Or(out.Metadata.Namespace, ofDomain(out.Domain), id.Namespace)
	out.Labels, out.Cluster = out.Metadata.Labels, n.Cluster
	out.Locality = locality(n.Locality)
	var err error
	out.Addresses, err = addresses(id.Address, out.Metadata.InstanceIPs)
	if err != nil {
		return nil, fmt.Errorf("%w: service node %q: %w", ErrBadNode, n.Id, err)
	}
	return out, nil
}

// ofDomain is the namespace that a domain such as default.svc.cluster.local begins with; empty
// without.
func ofDomain(domain string) string {
	namespace, _, ok := strings.Cut(domain, ".")
	if !ok {
		return ""
	}
	return namespace
}

// addresses are those of metadata INSTANCE_IPS if each is one, and otherwise the id's.
func addresses(id string, instance []string) ([]string, error) {
	for _, list := range [][]string{instance, {id}} {
		if out := valid(list); len(out) > 0 {
			return out, nil
		}
	}
	return nil, errors.New("no valid IP address, neither in the id's second part nor in metadata INSTANCE_IPS")
}

// valid returns addresses in one form; nil if one of them is none.
func valid(list []string) []string {
	out := make([]string, len(list))
	for i, text := range list {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return nil
		}
		out[i] = a.String()
	}
	return out
}

func locality(l *core.Locality) string {
	out := l.GetRegion()
	if l.GetZone() != "" || l.GetSubZone() != "" {
		out += "/" + l.GetZone()
	}
	if l.GetSubZone() != "" {
		out += "/" + l.GetSubZone()
	}
	return out
}

// IsEnvoy reports whether the proxy lists its extensions, as Envoys do when they ask.
func (n *Node) IsEnvoy() bool { return n.extensions != nil }

// Supports reports whether the proxy can be sent an extension: by default yes; no where it lists
// what it has and lacks all of the names.
func (n *Node) Supports(names ...string) bool {
	if n.extensions == nil {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(n.extensions, name) })
}
