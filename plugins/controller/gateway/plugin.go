// Package gateway is the built-in plugin controller/gateway: it deploys what serves Gateways of the
// Kubernetes Gateway API, as istiod does.
//
// wish.go says which objects a Gateway is to have, overlay.go what ConfigMaps may change of them,
// settle.go whether an object is as wished, and world.go what of the tables counts: pure functions.
// turns.go says whose turn it is; controller.go and cluster.go follow the cluster and write.
package gateway

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// agent is how the API server knows the plugin, and the field manager of what it writes.
const agent = "coxswain/controller-gateway"

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	// Namespace is the control plane's: it has the Lease, the values and the defaults of classes.
	Namespace string `json:"namespace" min:"1" doc:"The control plane's namespace, which has the Lease, the ConfigMap istio-sidecar-injector and those with defaults of classes."`
	// Revision is the control plane's; empty: the default one.
	Revision string `json:"revision" doc:"The control plane's revision: Gateways whose label istio.io/rev, or that of their namespace, names another one are left alone."`
	// Cluster is the name of the cluster that pods are told.
	Cluster string `json:"cluster" doc:"The name of the cluster, where the values of istio-sidecar-injector have none."`
	// ConfigMap has the values; Image is the proxy's where these are not to say.
	ConfigMap string `json:"configMap" doc:"The name of the ConfigMap whose values count, if it is another one than istio-sidecar-injector[-REVISION]; without it the built-in values count."`
	Image     string `json:"image" doc:"The proxy's image, in the place of that of the values."`
	// Overrides are fields beyond the usual ones that ConfigMaps of parametersRef may set.
	Overrides []string `json:"overrides" doc:"Fields that a Gateway's own ConfigMap (parametersRef) may set beyond the listed ones, such as deployment.spec.template.spec.nodeSelector; *: all, as with istiod."`
	// Accounts: pods may run as service accounts that were not made for the Gateway.
	Accounts bool `json:"foreignAccounts" doc:"Gateways may have their pods run as any service account of their namespace (annotation gateway.istio.io/service-account), as with istiod."`
	// Waypoints: something is deployed for waypoints of ambient mode, too, which are not served.
	Waypoints bool `json:"waypoints" doc:"Deploy waypoints of ambient mode (Gateways of class istio-waypoint), too, which are not served here: their proxies get nothing to do."`
	// Most is how many Gateways of a namespace get something deployed.
	Most int `json:"mostInNamespace" min:"1" doc:"For how many Gateways of a namespace something is deployed, the oldest first."`
	// Lease is how long that of the leader lasts; Alone: there is no other replica, and no Lease.
	Lease time.Duration `json:"lease" min:"1s" max:"1h" doc:"How long the Lease lasts by which replicas, and istiod, agree on who deploys."`
	Alone bool          `json:"alone" doc:"Nobody else deploys gateways: there is no Lease."`
}

func defaults() Config {
	return Config{Access: kube.DefaultAccess(), Namespace: "istio-system", Cluster: "Kubernetes", Most: 500, Lease: lead.Duration}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	for _, o := range c.Overrides {
		kind, path, _ := strings.Cut(o, ".")
		if o != everything && (path == "" || !slices.ContainsFunc(allParts(), func(s *part) bool { return s.overlay == kind })) {
			return strict.Errorf("overrides", "%q is neither %s nor KIND.FIELD, as deployment.spec.template.spec.nodeSelector", o, everything)
		}
	}
	if c.Namespace == "" {
		return strict.Errorf("namespace", "is empty")
	}
	return c.Access.Check()
}

// revision is the control plane's, by its whole name.
func (c *Config) revision() string { return cmp.Or(c.Revision, defaultRevision) }

// values is the name of the ConfigMap that has them.
func (c *Config) values() string {
	switch {
	case c.ConfigMap != "":
		return c.ConfigMap
	case c.revision() != defaultRevision:
		return "istio-sidecar-injector-" + c.Revision
	}
	return "istio-sidecar-injector"
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name: "controller/gateway", Version: "1",
		Reads: []string{
			gatewayapi.Gateway, gatewayapi.GatewayClass, gatewayapi.ListenerSet, kinds.ProxyConfig, state.Mesh, state.Namespaces,
		},
		Publishes: []string{kinds.FaultTable},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) {
			client, err := c.Client(agent)
			if err != nil {
				return nil, err
			}
			return &controller{config: c, client: client}, nil
		}),
	}
}
