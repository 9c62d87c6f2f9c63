package kube

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Access is how a plugin reaches an API server; these keys stand in its config.
type Access struct {
	// Kubeconfig is a file; empty: KUBECONFIG's or ~/.kube/config, and the service account in a
	// pod. Context is one of its contexts.
	Kubeconfig string `json:"kubeconfig" doc:"File with the API server's address and credentials; without it KUBECONFIG, ~/.kube/config, or the pod's service account."`
	Context    string `json:"context" doc:"Which of its contexts; its current one if absent."`
	// QPS and Burst limit requests to the API server.
	QPS   float64 `json:"qps" above:"0" doc:"Requests a second to the API server, at most."`
	Burst int     `json:"burst" min:"1" doc:"Requests at once, beyond that."`

	reach *reach
}

// DefaultAccess returns what counts where a config says nothing.
func DefaultAccess() Access { return Access{QPS: 80, Burst: 160, reach: &reach{}} }

// Check returns what is wrong with the keys, an error with its field, or nil.
func (a *Access) Check() error {
	switch {
	case a.QPS <= 0:
		return strict.Errorf("qps", "%v is not more than 0", a.QPS)
	case a.Burst < 1:
		return strict.Errorf("burst", "%d is less than 1", a.Burst)
	}
	return nil
}

// Connect returns the settings of a client that says it is agent. It asks nothing of the API
// server; an error is of the field kubeconfig.
func (a *Access) Connect(agent string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.Context}).ClientConfig()
	if err != nil {
		return nil, strict.Errorf("kubeconfig", "%v", err)
	}
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(a.QPS), a.Burst)
	config.UserAgent = agent
	config.Wrap(a.line().over)
	config.Wrap(guarded)
	return config, nil
}
