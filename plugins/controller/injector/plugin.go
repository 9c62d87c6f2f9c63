// Package injector is the built-in plugin controller/injector: it puts proxies into pods as they
// are created, as a webhook of the API server.
//
// The package render says what a pod becomes; settings.go follows what is to be injected; answer.go
// answers reviews.
package injector

import (
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// agent is how the API server knows the plugin.
const agent = "coxswain/controller-injector"

// Where settings come from.
const fromCluster, fromFiles = "cluster", "files"

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	From      string `json:"from" enum:"cluster,files" doc:"Where templates and values come from: a ConfigMap of the cluster, or files."`
	Namespace string `json:"namespace" min:"1" doc:"The control plane's namespace, which has the ConfigMap."`
	Cluster   string `json:"cluster" min:"1" doc:"The name of the cluster whose nodes are known: pods of others, as the webhook's path names them, are as if their nodes knew no native sidecars."`
	Revision  string `json:"revision" doc:"The control plane's revision: pods are marked with it, and the ConfigMap's name ends with it (istio-sidecar-injector-REVISION)."`
	ConfigMap string `json:"configMap" doc:"The name of the ConfigMap, if it is another one."`
	// ConfigFile and ValuesFile are for `from: files`.
	ConfigFile string        `json:"configFile" doc:"File with what the ConfigMap has under config, for from: files; followed. Without it, or where it has no templates, the built-in ones count."`
	ValuesFile string        `json:"valuesFile" doc:"File with what the ConfigMap has under values, for from: files; followed."`
	Look       time.Duration `json:"look" above:"0s" doc:"How often it is looked whether files have changed."`
	// NativeSidecars is whether proxies are init containers that go on running.
	NativeSidecars string   `json:"nativeSidecars" enum:"auto,true,false" doc:"Whether proxies are init containers that go on running, where a pod does not say: auto, if its node is of Kubernetes 1.33 or later or, while it has none, all nodes are. For pods of other clusters auto is false."`
	Webhooks       []string `json:"webhooks" doc:"Names of MutatingWebhookConfigurations that the control plane's root is written into; none: nothing is written."`
	CABundle       string   `json:"caBundleFile" doc:"File with the root of the webhook port's certificate, in PEM, where that is from a file."`
	Env            []string `json:"env" doc:"Names of variables of the environment that templates may read; the entry has to allow them, too (allow.env)."`
	Hosts          []string `json:"hosts" doc:"Names that templates may resolve (getHostByName)."`
	Compliance     string   `json:"compliancePolicy" doc:"A policy that agents keep to, such as fips-140-3 (COMPLIANCE_POLICY)."`
}

func defaults() Config {
	return Config{Access: kube.DefaultAccess(), From: fromCluster, Namespace: "istio-system", Cluster: "Kubernetes", Look: time.Second, NativeSidecars: "auto"}
}

// Check implements sdk.Checker.
func (c *Config) Check() error {
	switch {
	case c.From == fromCluster && c.ConfigFile+c.ValuesFile != "":
		return strict.Errorf("from", "configFile and valuesFile are for `from: files`")
	case slices.Contains(c.Env, ""):
		return strict.Errorf("env", "a name is empty")
	}
	return c.Access.Check()
}

// name is the ConfigMap's.
func (c *Config) name() string {
	switch {
	case c.ConfigMap != "":
		return c.ConfigMap
	case c.Revision != "" && c.Revision != "default":
		return "istio-sidecar-injector-" + c.Revision
	}
	return "istio-sidecar-injector"
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name: "controller/injector", Version: "1",
		Reads:     []string{state.Mesh, state.Namespaces, kinds.ProxyConfig, bundle.Table},
		Publishes: []string{kinds.FaultTable},
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) { return New(c) }),
	}
}

// New returns the controller. The error is a *sdk.FieldError: a cluster whose address isn't known.
// Files that can't be used are said as it runs, so that one that is started again answers.
func New(c Config) (*Controller, error) {
	out := &Controller{config: c, ready: make(chan struct{})}
	if c.From == fromFiles && c.NativeSidecars != "auto" && len(c.Webhooks) == 0 {
		return out, nil
	}
	client, err := c.Client(agent)
	if err != nil {
		return nil, err
	}
	out.client = client
	return out, nil
}

func (c *Config) allowed() render.Names { return render.Names{Env: c.Env, Hosts: c.Hosts} }
