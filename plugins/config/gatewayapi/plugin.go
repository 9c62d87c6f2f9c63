// Package gatewayapi is the built-in plugin config/gatewayapi: it makes Istio's Gateways,
// VirtualServices and DestinationRules of the kinds of the Kubernetes Gateway API, as istiod
// does.
//
// It derives: what it publishes is a function of the rows that it reads, whatever source these
// are from. plugins/internal/gatewayapi/derive knows what is made of what; deriver.go gives it
// rows, and publishes what changed. plugins/internal/gatewayapi/status says what is wrong with
// objects.
package gatewayapi

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/derive"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Domain is the DNS domain of the mesh's services.
	Domain string `json:"domain" doc:"DNS domain of the mesh's services: a backend of the kind Service is NAME.NAMESPACE.svc.DOMAIN."`
	// AllSecrets: Secrets and ConfigMaps that nobody publishes are missing.
	AllSecrets bool `json:"allSecrets" doc:"Secrets and ConfigMaps that no source publishes are missing, so that listeners which name them are not served. false: those that objects name and may have are asked for (config/secrets answers), and taken for there until it is known."`
	// ClusterSet: ServiceImports are reached by the names that registry/mcs makes.
	ClusterSet bool `json:"clusterSet" doc:"Backends of the kind ServiceImport are reached as NAME.NAMESPACE.svc.clusterset.local (registry/mcs), not as the service of the cluster."`
	// Controller is the controllerName of classes that are served.
	Controller string `json:"controller" doc:"The controllerName of GatewayClasses that are served, and the name by which statuses know this control plane. With another one than istio.io/gateway-controller the class istio is left to others."`
	// Statuses: what is to be said in objects' statuses is published.
	Statuses bool `json:"statuses" doc:"Publish what is to be said in the statuses of objects, for controller/status to write it."`
	// Beyond: what istiod doesn't serve is served, too.
	Beyond bool `json:"beyond" doc:"Serve what istiod doesn't, too, and say so in the class: 421 for requests that belong to another HTTPS listener of the port than their connection (GatewayHTTPSListenerDetectMisdirectedRequests), certificates that Gateways show to backends (GatewayBackendClientCertificate), UDPRoutes (UDPRoute), and all rules of a route but those that can't be, which answer 500."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Domain: "cluster.local", AllSecrets: true, Controller: string(status.Controller)}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if c.Domain == "" || strings.HasPrefix(c.Domain, ".") || strings.ContainsAny(c.Domain, "/ ") {
		return &sdk.FieldError{Field: "domain", Err: fmt.Errorf("%q is no DNS domain, such as cluster.local", c.Domain)}
	}
	if domain, path, ok := strings.Cut(c.Controller, "/"); !ok || domain == "" || path == "" || len(c.Controller) > 253 {
		return &sdk.FieldError{Field: "controller", Err: fmt.Errorf("%q is no controllerName, such as %s", c.Controller, status.Controller)}
	}
	return nil
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.DeriverPlugin {
	return sdk.DeriverPlugin{
		Name:      "config/gatewayapi",
		Version:   "1",
		Reads:     derive.Reads(),
		Publishes: []string{kinds.Gateway, kinds.VirtualService, kinds.DestinationRule, kinds.FaultTable, gatewayapi.Statuses, secrets.Named},
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.Deriver, error) { return newDeriver(c), nil }),
	}
}
