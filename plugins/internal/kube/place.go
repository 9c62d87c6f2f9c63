package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Place is where the kubeconfig of another cluster stands; these keys stand in a plugin's config.
type Place struct {
	// Remote is NAMESPACE/SECRET/KEY, or file:NAME of a file in Directory; empty: there is no other
	// cluster.
	Remote    string `json:"remote" doc:"NAMESPACE/SECRET/KEY: where the kubeconfig of the cluster stands, if it is another one than that of kubeconfig and context, which has the Secret; or file:NAME of a file in directory."`
	Directory string `json:"directory" doc:"Where kubeconfigs are that remote names as files."`
}

// FileMark begins the name of a file that has a cluster's kubeconfig, where NAMESPACE/NAME/KEY of a
// Secret could stand.
const FileMark = "file:"

// asking is how long reading a Secret may take.
const asking = 10 * time.Second

// Check returns what is wrong with the keys, an error with its field, or nil: whoever says where
// the kubeconfig is is not to choose files from elsewhere.
func (p Place) Check() error {
	name, file := strings.CutPrefix(p.Remote, FileMark)
	switch {
	case p.Remote == "":
		return nil
	case file && p.Directory == "":
		return strict.Errorf("directory", "is needed where remote names a file")
	case file && (name == "" || name != filepath.Base(name) || name == "." || name == ".."):
		return strict.Errorf("remote", "%q is not the name of a file in the directory", name)
	case file:
		return nil
	}
	if _, err := ParseSecretKey(p.Remote); err != nil {
		return strict.Errorf("remote", "%v", err)
	}
	return nil
}

// Read returns the kubeconfig. A Secret is read from core.
func (p Place) Read(ctx context.Context, core rest.Interface) ([]byte, error) {
	if name, ok := strings.CutPrefix(p.Remote, FileMark); ok {
		return os.ReadFile(filepath.Join(p.Directory, name))
	}
	from, err := ParseSecretKey(p.Remote)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	secret := &corev1.Secret{}
	if err := core.Get().Namespace(from.Namespace).Resource("secrets").Name(from.Name).Do(ctx).Into(secret); err != nil {
		return nil, err
	}
	kubeconfig, ok := secret.Data[from.Key]
	if !ok {
		return nil, fmt.Errorf("the Secret has no %s", from.Key)
	}
	return kubeconfig, nil
}

// Reach returns the client of the place's cluster, and without a place that of here, which has the
// Secret; nil: ctx ended. A kubeconfig that can't be had is waited for, and failed is told why.
func (p Place) Reach(ctx context.Context, a *Access, here *Client, agent string, failed func(error)) *Client {
	if p.Remote == "" {
		return here
	}
	for {
		kubeconfig, err := p.Read(ctx, here.Core)
		if err == nil {
			var config *rest.Config
			if config, err = a.Other(kubeconfig, agent); err == nil {
				var client *Client
				if client, err = NewClient(config); err == nil {
					return client
				}
			}
		}
		failed(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(askAgain):
		}
	}
}

// askAgain is when a kubeconfig is read again that could not be.
const askAgain = 2 * time.Second
