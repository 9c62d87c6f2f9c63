package fleet

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Own says what a sidecar has that no other one has.
type Own struct {
	// Address: that of an endpoint of a service of the mesh, so that it has inbound listeners.
	Address bool
	// Labels of its workload; Tags of its traces.
	Labels, Tags bool
}

// meshNamespaces is over how many namespaces the generated mesh's services are spread, by their
// number.
const meshNamespaces = 10

// Pod is where a sidecar runs.
type Pod struct {
	Name, Namespace, Address string
	Labels                   map[string]string
	// Router: it is a gateway.
	Router bool
}

// node encodes who sidecar i is.
func (c Config) node(i int) ([]byte, error) {
	if len(c.Pods) == 0 {
		return node(i, c.Namespaces, c.Own)
	}
	p := c.Pods[i]
	labels := map[string]any{}
	for k, v := range p.Labels {
		labels[k] = v
	}
	kind := "sidecar"
	if p.Router {
		kind = "router"
	}
	return encode(kind, p.Name, p.Namespace, p.Address, labels, map[string]any{"concurrency": 2})
}

// node encodes who sidecar i is that runs in no pod of the mesh, or in one that the mesh's
// generator made.
func node(i, namespaces int, own Own) ([]byte, error) {
	name := fmt.Sprintf("fleet-%05d", i)
	namespace, address := fmt.Sprintf("ns-%02d", i%namespaces), fmt.Sprintf("10.64.%d.%d", i>>8, i&255)
	if own.Address { // every second service has one
		service := 2 * i
		endpoint := service * 10
		namespace = fmt.Sprintf("ns-%02d", service%meshNamespaces)
		address = fmt.Sprintf("10.%d.%d.%d", 128+endpoint>>16, endpoint>>8&255, endpoint&255)
	}
	labels := map[string]any{"app": "fleet", "version": "v1"}
	if own.Labels {
		labels = map[string]any{"app": name, "version": "v1", "pod": name}
	}
	proxy := map[string]any{"concurrency": 2}
	if own.Tags {
		proxy["tracing"] = map[string]any{
			"zipkin": map[string]any{"address": "127.0.0.1:9411"}, "sampling": 10,
			"customTags": map[string]any{"pod": map[string]any{"literal": map[string]any{"value": name}}},
		}
	}
	return encode("sidecar", name, namespace, address, labels, proxy)
}

// encode encodes who a sidecar is, or a gateway (a router), as Istio's agent writes it.
func encode(kind, name, namespace, address string, labels, proxy map[string]any) ([]byte, error) {
	metadata, err := structpb.NewStruct(map[string]any{
		"NAME": name, "NAMESPACE": namespace, "LABELS": labels, "INSTANCE_IPS": address, "CLUSTER_ID": "Kubernetes", "MESH_ID": "cluster.local",
		"ISTIO_VERSION": "1.31.0", "INTERCEPTION_MODE": "REDIRECT", "SERVICE_ACCOUNT": "default", "WORKLOAD_NAME": name, "PROXY_CONFIG": proxy,
	})
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&corev3.Node{
		Id:       fmt.Sprintf("%s~%s~%s.%s~%s.svc.cluster.local", kind, address, name, namespace, namespace),
		Cluster:  fmt.Sprint(labels["app"], ".", namespace),
		Metadata: metadata,
	})
}
