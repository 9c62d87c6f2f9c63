package endpoint

import (
	"cmp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/dialing"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Endpoint is a row of the table `endpoints`.
type Endpoint struct {
	pb.Endpoint
	Key string
}

// Mutual is the TLS mode of endpoints that speak the mesh's mutual TLS.
const Mutual = "istio"

// drains reports whether the endpoint gets no new work.
func (e *Endpoint) drains() bool { return dialing.Drains(&e.Endpoint) }

// Ready reports whether the endpoint takes new work: it is healthy, and doesn't drain.
func (e *Endpoint) Ready() bool { return dialing.Ready(&e.Endpoint) }

// plain is the endpoint without its TLS.
func (e *Endpoint) plain() *Endpoint {
	out := *e
	out.TlsMode = ""
	return &out
}

// ServiceKey is the key of the service that the endpoint belongs to.
func (e *Endpoint) ServiceKey() string { return e.Namespace + "/" + e.Host }

// Identity is the SPIFFE name of the workload; empty where it has no service account.
func (e *Endpoint) Identity(trustDomain string) string {
	return istio.AccountIdentity(e.ServiceAccount, e.namespace(), trustDomain)
}

// namespace is the workload's.
func (e *Endpoint) namespace() string {
	if e.WorkloadNamespace != "" {
		return e.WorkloadNamespace
	}
	return e.Namespace
}

// canonical names the workload's service and its revision, for telemetry.
func (e *Endpoint) canonical() (service, revision string) {
	return cmp.Or(first(e.Labels, "service.istio.io/canonical-name", "app.kubernetes.io/name", "app"), e.Workload),
		first(e.Labels, "service.istio.io/canonical-revision", "app.kubernetes.io/version", "version")
}

func first(labels map[string]string, keys ...string) string {
	for _, k := range keys {
		if v, ok := labels[k]; ok {
			return v
		}
	}
	return ""
}

// Order is the order of a service's endpoints as they were declared.
func Order(a, b *Endpoint) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Key, b.Key))
}
