package kubernetes

import (
	"context"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// asking is how long a question may take.
const asking = 10 * time.Second

// reach returns the client of the cluster; nil: ctx ended. A kubeconfig that can't be had is waited
// for.
func (r *registry) reach(ctx context.Context, out sdk.Publisher) *kube.Client {
	var said kube.LogLimiter
	return r.config.Reach(ctx, &r.config.Access, r.client, agent, func(err error) {
		if said.Allow("remote", err, time.Now()) {
			out.Log(sdk.Warn, "the cluster's kubeconfig can't be had; it is tried again", "remote", r.config.Remote, "error", err.Error())
		}
	})
}

// suffix is what rows of a remote cluster have behind their keys, so that those of the same name in
// another one don't hide them.
func (c *Config) suffix(mark string) string {
	if c.Remote == "" {
		return ""
	}
	return mark + c.Cluster
}

// here is the row of what a service is in a remote cluster; nil in the local one, whose row counts.
func (c *Config) here(s *pb.Service, created int64) *sdk.Row {
	if c.Remote == "" {
		return nil
	}
	is := &pb.Service{
		Host: s.Host, Namespace: s.Namespace, Name: s.Name, Registry: s.Registry, Cluster: s.Cluster, Selector: s.Selector, Ports: s.Ports,
		SubjectAltNames: s.SubjectAltNames, ServiceAccounts: s.ServiceAccounts, Aliases: s.Aliases, Labels: s.Labels,
		ExternalAddresses: s.ExternalAddresses, ExternalPorts: s.ExternalPorts, ClusterAddresses: map[string]string{c.Cluster: nobodys},
	}
	if len(s.Addresses) > 0 {
		is.ClusterAddresses[c.Cluster] = strings.Join(s.Addresses, ",")
	}
	return &sdk.Row{Key: sdk.ServiceKey(s.Namespace, s.Host) + "/" + c.Cluster, Created: created, Payload: is.AppendTo(nil)}
}

// nobodys stands for the address of a headless service.
const nobodys = "0.0.0.0"

// named is the row of a service that the cluster has only other names for; nil without any.
func (c *Config) named(namespace, host string, aliases []string) map[string]map[string]*sdk.Row {
	if len(aliases) == 0 {
		return nil
	}
	is := &pb.Service{Host: host, Namespace: namespace, Aliases: aliases}
	return one(state.ClusterServices, &sdk.Row{Key: sdk.ServiceKey(namespace, host) + "/" + c.Cluster, Payload: is.AppendTo(nil)})
}
