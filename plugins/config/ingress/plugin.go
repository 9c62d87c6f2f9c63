// Package ingress is the built-in plugin config/ingress: it makes Istio's Gateways and
// VirtualServices of Kubernetes' Ingresses, as istiod does.
//
// It derives: what it publishes is a function of the rows that it reads, whatever source these are
// from. graph.go has the functions, gateway.go and route.go what they make, note.go what is wrong
// with an Ingress.
package ingress

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Domain is the DNS domain of the mesh's services.
	Domain string `json:"domain" doc:"DNS domain of the mesh's services: a backend is NAME.NAMESPACE.svc.DOMAIN."`
	// Namespace is that of the Gateways that are made.
	Namespace string `json:"namespace" min:"1" doc:"The namespace of the Gateways that are made, as istiod's K8S_INGRESS_NS."`
}

// defaults are what counts where the config says nothing.
func defaults() Config { return Config{Domain: "cluster.local", Namespace: "istio-system"} }

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if c.Domain == "" || strings.HasPrefix(c.Domain, ".") || strings.ContainsAny(c.Domain, "/ ") {
		return &sdk.FieldError{Field: "domain", Err: fmt.Errorf("%q is no DNS domain, such as cluster.local", c.Domain)}
	}
	if c.Namespace == "" || strings.ContainsAny(c.Namespace, "/. ") {
		return &sdk.FieldError{Field: "namespace", Err: fmt.Errorf("%q is no name of a namespace", c.Namespace)}
	}
	return nil
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.DeriverPlugin {
	return sdk.DeriverPlugin{
		Name:      "config/ingress",
		Version:   "1",
		Reads:     []string{ingress.Ingress, ingress.Class, state.Mesh + "@sources", state.Services + "@sources", kinds.ServiceEntry + "@sources"},
		Publishes: []string{kinds.Gateway, kinds.VirtualService, kinds.FaultTable},
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.Deriver, error) { return newDeriver(c), nil }),
	}
}
