package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// clusterFlags are how a command reaches an API server.
type clusterFlags struct {
	kubeconfig, context string
	timeout             time.Duration
}

func (f *clusterFlags) add(c *cobra.Command) {
	c.PersistentFlags().StringVar(&f.kubeconfig, "kubeconfig", "",
		"file with the API server's address and credentials; without it KUBECONFIG, ~/.kube/config, or the pod's service account")
	c.PersistentFlags().StringVar(&f.context, "context", "", "which of its contexts; its current one if absent")
	c.PersistentFlags().DurationVar(&f.timeout, "timeout", 30*time.Second, "how long the API server is waited for, in all")
}

// client makes a client, and a context that ends when the timeout is over.
func (f *clusterFlags) client(p *program, c *cobra.Command) (dynamic.Interface, context.Context, context.CancelFunc, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	if home := p.variable("HOME"); f.kubeconfig == "" && p.variable("KUBECONFIG") == "" && home != "" {
		rules.Precedence = []string{filepath.Join(home, ".kube", "config")}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("the cluster: %w", err)
	}
	config.UserAgent = "coxswain/" + c.Name()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("the cluster: %w", err)
	}
	ctx, cancel := context.WithTimeout(c.Context(), f.timeout)
	return client, ctx, cancel, nil
}
