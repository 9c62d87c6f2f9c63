package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// askAgain is when a Secret is read again that could not be read, and asking how long that may take.
const askAgain, asking = 2 * time.Second, 10 * time.Second

// reach returns the client of the cluster; nil: ctx ended. A kubeconfig that can't be had is waited for.
func (r *registry) reach(ctx context.Context, out sdk.Publisher) (*kube.Client, error) {
	if r.config.Remote == "" {
		return r.client, nil
	}
	var said kube.Complaints
	for {
		client, err := r.remote(ctx)
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

// remote makes the client of the cluster whose kubeconfig a Secret or a file has.
func (r *registry) remote(ctx context.Context) (*kube.Client, error) {
	kubeconfig, err := r.kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	config, err := r.config.Access.Remote(kubeconfig, agent)
	if err != nil {
		return nil, err
	}
	return kube.NewClient(config)
}

func (r *registry) kubeconfig(ctx context.Context) ([]byte, error) {
	if name, ok := strings.CutPrefix(r.config.Remote, kube.FileMark); ok {
		return os.ReadFile(filepath.Join(r.config.Directory, name))
	}
	from, err := kube.ParseSecretKey(r.config.Remote)
	if err != nil {
		return nil, err
	}
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
	return kubeconfig, nil
}

// checkRemote returns what is wrong with where the kubeconfig is said to stand: whoever says it is not to choose files from elsewhere.
func (c *Config) checkRemote() error {
	name, file := strings.CutPrefix(c.Remote, kube.FileMark)
	switch {
	case file && c.Directory == "":
		return strict.Errorf("directory", "is needed where remote names a file")
	case file && (name == "" || name != filepath.Base(name) || name == "." || name == ".."):
		return strict.Errorf("remote", "%q is not the name of a file in the directory", name)
	case file:
		return nil
	}
	if _, err := kube.ParseSecretKey(c.Remote); err != nil {
		return strict.Errorf("remote", "%v", err)
	}
	return nil
}

// suffix is what rows of a remote cluster have behind their keys, so that those of the same name in another one don't hide them.
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
