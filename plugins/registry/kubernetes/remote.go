package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// askAgain is when a Secret is read again that could not be read, and asking how long that may take.
const askAgain, asking = 2 * time.Second, 10 * time.Second

// reach returns the client of the cluster; nil: ctx ended. A kubeconfig that can't be had is waited for.
func (r *registry) reach(ctx context.Context, out sdk.Publisher) (*kube.Client, error) {
	if r.config.Remote == "" {
		return r.client, nil
	}
	from, err := kube.ParseSecretKey(r.config.Remote)
	if err != nil {
		return nil, err
	}
	var said kube.Complaints
	for {
		client, err := r.remote(ctx, from)
		if err == nil {
			return client, nil
		}
		if said.First("remote", err, time.Now()) {
			out.Log(sdk.Warn, "the cluster's kubeconfig can't be had; it is tried again", "remote", r.config.Remote, "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(askAgain):
		}
	}
}

// remote makes the client of the cluster whose kubeconfig a Secret has.
func (r *registry) remote(ctx context.Context, from kube.SecretKey) (*kube.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	secret := &corev1.Secret{}
	if err := r.client.Core.Get().Namespace(from.Namespace).Resource("secrets").Name(from.Name).Do(ctx).Into(secret); err != nil {
		return nil, err
	}
	kubeconfig, ok := secret.Data[from.Key]
	if !ok {
		return nil, fmt.Errorf("the Secret has no %s", from.Key)
	}
	config, err := r.config.Access.Remote(kubeconfig, agent)
	if err != nil {
		return nil, err
	}
	return kube.NewClient(config)
}

// suffix is what rows of a remote cluster have behind their keys, so that those of the same name in another one don't hide them.
func (c *Config) suffix(mark string) string {
	if c.Remote == "" {
		return ""
	}
	return mark + c.Cluster
}

// here is the row of what a service is in a remote cluster; nil where there is nothing that another cluster's row has not.
func (c *Config) here(s *pb.Service) *sdk.Row {
	if c.Remote == "" || len(s.Addresses)+len(s.ExternalAddresses)+len(s.SubjectAltNames) == 0 {
		return nil
	}
	is := &pb.Service{Host: s.Host, Namespace: s.Namespace, SubjectAltNames: s.SubjectAltNames}
	if len(s.ExternalAddresses) > 0 { // it may be the gateway of a network, by its labels
		is.ExternalAddresses, is.ExternalPorts, is.Labels, is.Ports = s.ExternalAddresses, s.ExternalPorts, s.Labels, s.Ports
	}
	if len(s.Addresses) > 0 {
		is.ClusterAddresses = map[string]string{c.Cluster: strings.Join(s.Addresses, ",")}
	}
	return &sdk.Row{Key: sdk.ServiceKey(s.Namespace, s.Host) + "/" + c.Cluster, Payload: is.AppendTo(nil)}
}
