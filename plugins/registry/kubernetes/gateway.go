package kubernetes

import (
	"net"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// gatewayVersions are the versions of Gateway that are read, the newest first.
// Source: Gateway API, "Versioning".
var gatewayVersions = []schema.GroupVersion{
	{Group: "gateway.networking.k8s.io", Version: "v1"},
	{Group: "gateway.networking.k8s.io", Version: "v1beta1"},
}

// gateway is a Gateway of the Gateway API, as far as it is read.
type gateway struct {
	metav1.ObjectMeta
	Spec gatewaySpec `json:"spec"`
}

type gatewaySpec struct {
	GatewayClassName string `json:"gatewayClassName"`
	Addresses        []struct {
		Type  *string `json:"type"`
		Value string  `json:"value"`
	} `json:"addresses"`
	Listeners []gatewayListener `json:"listeners"`
}

type gatewayListener struct {
	Port     int32  `json:"port"`
	Protocol string `json:"protocol"`
	TLS      *struct {
		Mode    *string           `json:"mode"`
		Options map[string]string `json:"options"`
	} `json:"tls"`
}

// leanGateway makes a gateway of what the API server sent.
func leanGateway(sent any) (any, error) {
	u, ok := sent.(*unstructured.Unstructured)
	if !ok {
		return sent, nil // kept already
	}
	out := &gateway{
		ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), Namespace: u.GetNamespace(), ResourceVersion: u.GetResourceVersion(), Labels: u.GetLabels()},
	}
	spec, _ := u.Object["spec"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &out.Spec); err != nil {
		return &gateway{ObjectMeta: out.ObjectMeta}, nil // its definition is another one; it has no addresses that could be read
	}
	return out, nil
}

// Words of Gateways that stand for the gateways of networks.
// Source: Istio, "Kubernetes Gateway API", multi-network.
const (
	// remoteClass is of Gateways that stand for what runs elsewhere. They count in the cluster
	// whose objects are the control plane's.
	remoteClass = "istio-remote"
	// autoPassthrough among the options of a listener's TLS has it pass connections on by the
	// cluster's name in their server name.
	listenerMode, autoPassthrough = "gateway.istio.io/listener-protocol", "auto-passthrough"
	gatewayPortLabel              = "networking.istio.io/gatewayPort"
	networkPort                   = "15443"
)

// entrances are where a Gateway with the label of a network is the entrance of that network: at its
// addresses, by listeners that pass mutual TLS through.
func (c *Config) entrances(g *gateway) (out []*pb.Endpoint) {
	network := g.Labels[hosts.NetworkLabel]
	if network == "" || g.Spec.GatewayClassName == remoteClass && c.Remote != "" {
		return nil
	}
	for _, a := range g.Spec.Addresses {
		if a.Type != nil && *a.Type != "IPAddress" && *a.Type != "Hostname" {
			continue
		}
		for _, l := range g.Spec.Listeners {
			if l.passes(g.Labels) {
				out = append(out, &pb.Endpoint{Network: network, Cluster: c.Cluster, Address: a.Value, Port: uint32(l.Port)})
			}
		}
	}
	return out
}

// passes reports whether a listener passes through what comes from other networks: it says so, or
// has the port for it.
func (l *gatewayListener) passes(labels map[string]string) bool {
	switch {
	case l.Protocol == "HBONE":
		return true // as istiod, for sidecars too
	case l.TLS == nil:
		return false
	}
	port := networkPort
	if own, ok := labels[gatewayPortLabel]; ok {
		port = own
	}
	return l.TLS.Options[listenerMode] == autoPassthrough || strconv.Itoa(int(l.Port)) == port
}

// entranceRows are rows of table networkgateways.
func (c *Config) entranceRows(g *gateway) map[string]map[string]*sdk.Row {
	rows := map[string]*sdk.Row{}
	for _, e := range c.entrances(g) {
		key := c.Cluster + "/" + g.Namespace + "/" + g.Name + "/" + net.JoinHostPort(e.Address, strconv.Itoa(int(e.Port)))
		rows[key] = &sdk.Row{Key: key, Payload: e.AppendTo(nil)}
	}
	if len(rows) == 0 {
		return nil
	}
	return map[string]map[string]*sdk.Row{state.NetworkGateways: rows}
}
