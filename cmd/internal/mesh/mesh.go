// Package mesh is what the core is told of Istio's names: who a node may be, which namespace
// somebody is of, and which types its tools ask for by xDS. The core itself knows none of them.
package mesh

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Naming is what names mean, where callers of a namespace may ask everything. Callers of trust
// domains that are not the mesh's count only if foreign ones may come.
func Naming(operators string, foreign bool) caller.Naming {
	n := caller.Naming{Operators: operators, Trusted: trusted, May: may, Namespaces: namespaces, NamespaceOf: namespaceOf, Short: short}
	if foreign {
		n.Trusted = nil
	}
	return n
}

// Tools are the types that Istio's tools ask for, and the keys of a node's metadata that they show.
func Tools() admin.Tools {
	return admin.Tools{
		Pages: "istio.io/debug", Clients: "istio.io/debug/syncz", Dump: "istio.io/debug/config_dump",
		Metadata: []string{"CLUSTER_ID", "NAMESPACE", "LABELS", "ISTIO_VERSION", "COXSWAIN_NO_AGENT", "COXSWAIN_REGEX_PROGRAM"},
	}
}

// Spare are the types of Istio's own HTTP filters, of which none decides anything: metrics, and
// what they say of the other side.
func Spare() []string {
	return []string{"io.istio.http.peer_metadata.Config", "stats.PluginConfig", "istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig"}
}

// Version is what a node says of the version of its client.
func Version(n *corev3.Node) string {
	return n.GetMetadata().GetFields()["ISTIO_VERSION"].GetStringValue()
}

// HealthType is the type by which Istio's agents report the health of their workload, on the stream
// of their proxy.
const HealthType = "type.googleapis.com/istio.v1.HealthInformation"

// namespaces returns those of the identities of workloads.
func namespaces(identities []string) (all []string) {
	for _, text := range identities {
		if i, ok := istio.ParseIdentity(text); ok {
			all = append(all, i.Namespace)
		}
	}
	return all
}

// namespaceOf is a node's: what its metadata says, else what its id does.
func namespaceOf(n *corev3.Node) string { return claimOf(n).namespace }

// short is NAME.NAMESPACE of a node, as Istio's tools name proxies.
func short(n *corev3.Node) string {
	if id, ok := istio.ParseNodeID(n.GetId()); ok {
		return id.Short()
	}
	return ""
}

// claim is who a node says it is. What is empty it doesn't say.
type claim struct {
	namespace, account string
}

func claimOf(n *corev3.Node) claim {
	fields := n.GetMetadata().GetFields()
	c := claim{namespace: fields["NAMESPACE"].GetStringValue(), account: fields["SERVICE_ACCOUNT"].GetStringValue()}
	if id, ok := istio.ParseNodeID(n.GetId()); ok && c.namespace == "" {
		c.namespace = id.Namespace
	}
	return c
}

func (c claim) admits(i istio.Identity) bool {
	return (c.namespace == "" || c.namespace == i.Namespace) && (c.account == "" || c.account == i.ServiceAccount)
}

func (c claim) String() string {
	var words []string
	if c.namespace != "" {
		words = append(words, fmt.Sprintf("namespace %q", c.namespace))
	}
	if c.account != "" {
		words = append(words, fmt.Sprintf("service account %q", c.account))
	}
	return strings.Join(words, " and ")
}

// maxReason is how many bytes of what others wrote an error may have.
const maxReason = 300

// may returns those of the identities that the node may have: namespace and, if the node names one,
// service account must be its own. Trust domains were looked at before (trusted).
func may(n *corev3.Node, identities []string) ([]string, error) {
	c := claimOf(n)
	own := slices.DeleteFunc(slices.Clone(identities), func(text string) bool {
		i, ok := istio.ParseIdentity(text)
		return !ok || !c.admits(i)
	})
	if len(own) > 0 {
		return own, nil
	}
	who := budget.Line(strings.Join(identities, ", "), maxReason)
	if says := budget.Line(c.String(), maxReason); says != "" {
		return nil, status.Errorf(codes.PermissionDenied, "the node says that it is of %s, but the caller is %s; "+
			"correct NAMESPACE and SERVICE_ACCOUNT in the node's metadata, or connect with the credentials of that workload", says, who)
	}
	return nil, status.Errorf(codes.PermissionDenied, "the caller is %s, which is no workload's identity: "+
		"that has the form spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT", who)
}
