package ca

import (
	"slices"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/coxswain-mesh/coxswain/plugins/internal/trust"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// nodes knows which accounts run on which nodes, for agents of nodes that ask for certificates in
// the place of the pods there.
type nodes struct {
	// trusted are the agents' accounts, NAMESPACE/NAME.
	trusted []string

	mu sync.Mutex
	// of is what the rest was made of.
	of *state.State
	// pods are the nodes of pods, with their accounts; accounts are those that run on a node.
	pods     map[podName]placed
	accounts map[placed]bool
}

// podName is a pod, NAMESPACE/NAME, in a cluster.
type podName struct{ cluster, name string }

// placed is an account, NAMESPACE/NAME, on a node of a cluster.
type placed struct{ cluster, node, account string }

// saw takes a state that has come.
func (n *nodes) saw(s *state.State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s != n.of {
		n.of, n.pods = s, nil
	}
}

// look returns what the last state says. What is made of it stays until the next one.
func (n *nodes) look() (pods map[podName]placed, accounts map[placed]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pods != nil || n.of == nil {
		return n.pods, n.accounts
	}
	n.pods, n.accounts = map[podName]placed{}, map[placed]bool{}
	for _, row := range n.of.Table(state.Workloads).All() {
		w, err := sdk.WorkloadOf(row)
		if err != nil || w.Node == "" || w.ServiceAccount == "" {
			continue
		}
		at := placed{w.Cluster, w.Node, w.Namespace + "/" + w.ServiceAccount}
		n.pods[podName{w.Cluster, w.Namespace + "/" + w.Name}] = at
		n.accounts[at] = true
	}
	return n.pods, n.accounts
}

// agent returns the account of a caller that is an agent of a node, NAMESPACE/NAME; empty: it is
// none.
func (n *nodes) agent(call sdk.Call, domains []string) string {
	for _, text := range call.Identities {
		i, ok := istio.ParseIdentity(text)
		if account := i.Namespace + "/" + i.ServiceAccount; ok && slices.Contains(domains, i.TrustDomain) && slices.Contains(n.trusted, account) {
			return account
		}
	}
	return ""
}

// stands says why an agent may not have the certificate of an account, NAMESPACE/NAME, if so: it
// has no pod on the node of the agent's own pod. Source: Istio, CA_TRUSTED_NODE_ACCOUNTS.
func (n *nodes) stands(call sdk.Call, agent, account string) error {
	pod := podName{call.Facts[trust.Cluster], call.Facts[trust.Pod]}
	if pod.name == "" {
		return refuse(codes.PermissionDenied, "who asks for the certificate of somebody else must show the token of its pod")
	}
	pods, accounts := n.look()
	at, known := pods[pod]
	if !known || at.account != agent {
		return refuse(codes.PermissionDenied, "the caller's pod, %s of cluster %s, is on no node that is known here", pod.name, pod.cluster)
	}
	if !accounts[placed{at.cluster, at.node, account}] {
		return refuse(codes.PermissionDenied, "no pod of the service account %s is known on the caller's node, %s", account, at.node)
	}
	return nil
}
