// Package secrets is the built-in plugin config/secrets: those Secrets and ConfigMaps of a
// Kubernetes cluster that proxies ask for, and what their accounts may have.
//
// follower.go decides how objects are followed: watched.go by a watch of each, space.go by one of a
// namespace's metadata, reader.go by reading them. rights.go asks the API server what accounts may
// do, source.go reads what is asked for and publishes the answers.
package secrets

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	// Place has the kubeconfig of another cluster, whose id is Cluster. Hash is what may differ in
	// the configs of two instances whose kubeconfigs do.
	kube.Place
	Cluster string `json:"cluster" doc:"The id of the cluster, if it is another one (remote)."`
	Hash    string `json:"hash" doc:"Anything; where it changes, as that of another kubeconfig does, a new instance takes the place of the old one."`
}

// agent is what it says it is to API servers.
const agent = "coxswain/config-secrets"

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if c.Remote != "" && c.Cluster == "" {
		return strict.Errorf("cluster", "is needed where remote is given")
	}
	if err := c.Place.Check(); err != nil {
		return err
	}
	return c.Access.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/secrets",
		Version:   "1",
		Reads:     []string{secrets.Requests, secrets.Named},
		Publishes: []string{secrets.SecretTable, secrets.ConfigMapTable, secrets.Absences, secrets.Rights},
		Secrets:   []string{secrets.SecretTable},
		New: sdk.WithConfig(Config{Access: kube.DefaultAccess()}, func(c Config) (sdk.ConfigSource, error) {
			if c.Remote == "" {
				c.Cluster = "" // the first cluster's objects are told without it
			}
			client, err := c.Client(agent)
			if err != nil {
				return nil, err
			}
			return &source{c, client, usual}, nil
		}),
	}
}
