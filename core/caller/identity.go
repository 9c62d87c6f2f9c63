package caller

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/budget"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// identity is an Istio identity: spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT.
type identity struct {
	namespace, account string
}

func parseIdentity(text string) (identity, bool) {
	rest, ok := strings.CutPrefix(text, "spiffe://")
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 5 || parts[1] != "ns" || parts[3] != "sa" || parts[0] == "" || parts[2] == "" || parts[4] == "" {
		return identity{}, false
	}
	return identity{namespace: parts[2], account: parts[4]}, true
}

// claim is who a node says it is. What is empty it doesn't say.
type claim identity

// claimOf reads the node's metadata; where that names no namespace, its id does: TYPE~IP~NAME.NAMESPACE~DOMAIN.
func claimOf(n *corev3.Node) claim {
	fields := n.GetMetadata().GetFields()
	c := claim{namespace: fields["NAMESPACE"].GetStringValue(), account: fields["SERVICE_ACCOUNT"].GetStringValue()}
	if c.namespace == "" {
		if parts := strings.Split(n.GetId(), "~"); len(parts) == 4 {
			_, c.namespace, _ = strings.Cut(parts[2], ".")
		}
	}
	return c
}

func (c claim) admits(i identity) bool {
	return (c.namespace == "" || c.namespace == i.namespace) && (c.account == "" || c.account == i.account)
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

// matching returns those of the identities that the node may have: namespace and, if the node names one, service account must be its
// own. Trust domains are not compared.
func matching(n *corev3.Node, identities []string) ([]string, error) {
	c := claimOf(n)
	var own []string
	for _, text := range identities {
		if i, ok := parseIdentity(text); ok && c.admits(i) {
			own = append(own, text)
		}
	}
	if len(own) > 0 {
		return own, nil
	}
	caller := budget.Line(strings.Join(identities, ", "), maxReason)
	if says := budget.Line(c.String(), maxReason); says != "" {
		return nil, status.Errorf(codes.PermissionDenied, "the node says that it is of %s, but the caller is %s; "+
			"correct NAMESPACE and SERVICE_ACCOUNT in the node's metadata, or connect with the credentials of that workload", says, caller)
	}
	return nil, status.Errorf(codes.PermissionDenied, "the caller is %s, which is no workload's identity: "+
		"that has the form spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT", caller)
}
