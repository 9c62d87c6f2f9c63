package xds

import (
	"fmt"
	"net"
	"os"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// node is who asks, as an istiod names itself to its config sources: a proxy's id, whose metadata
// asks for the generator api. An istiod tells sidecars of changes in their own scope alone, and
// leaves out Gateways and much else; waypoints hear of all. Source: Istio, "ConfigSource" of
// MeshConfig, and what an istiod sends.
func (c *Config) node() *corev3.Node {
	name := c.Node.Name
	if name == "" {
		name, _ = os.Hostname() // the name is for people
	}
	if name == "" {
		name = "coxswain"
	}
	fields := map[string]*structpb.Value{
		"GENERATOR":     structpb.NewStringValue("api"),
		"ISTIO_VERSION": structpb.NewStringValue("65536.65536.65536"), // of no version: nothing is withheld for its sake
	}
	if c.Revision != "" {
		fields["ISTIO_REVISION"] = structpb.NewStringValue(c.Revision)
	}
	return &corev3.Node{
		Id:       fmt.Sprintf("%s~%s~%s.%s~%s.svc.cluster.local", c.Node.Type, ownAddress(), name, c.Node.Namespace, c.Node.Namespace),
		Metadata: &structpb.Struct{Fields: fields},
	}
}

// ownAddress is the machine's first private address.
func ownAddress() string {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if of, ok := a.(*net.IPNet); ok && of.IP.IsPrivate() {
			return of.IP.String()
		}
	}
	return "127.0.0.1"
}
