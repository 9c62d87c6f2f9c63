package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain"
	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/plugins/validation/files"
)

// setText returns the file that says what to run, and its name: that of --plugins, or a built-in
// one.
func setText(in settings.Inputs, inPod bool) (name string, text []byte, err error) {
	switch {
	case in.Plugins != "":
		if text, err = files.Read(in.Plugins); err != nil {
			return "", nil, fmt.Errorf("plugins: %w", err)
		}
		return in.Plugins, text, nil
	case in.Registries == "Kubernetes", in.Registries == "auto" && (in.Kubeconfig != "" || inPod && in.ConfigDir == ""):
		return kubernetesSet, coxswain.KubernetesSet(), nil
	case in.Registries == "Consul":
		return "plugins.yaml with Consul (built in)", append(coxswain.DefaultSet(), consulEntry...), nil
	case in.Registries == "Eureka":
		return "plugins.yaml with Eureka (built in)", append(coxswain.DefaultSet(), eurekaEntry...), nil
	}
	return "plugins.yaml (built in)", coxswain.DefaultSet(), nil
}

// kubernetesSet is the name of the built-in set for a cluster.
const kubernetesSet = "plugins.yaml for Kubernetes (built in)" // its folder is where plugins start

// consulEntry is what --registries Consul adds to the default set.
const consulEntry = `
  # Services from Consul (--consulserverURL).
  - name: consul
    kind: registry
    builtin: registry/consul
`

// eurekaEntry is what --registries Eureka adds to it.
const eurekaEntry = `
  # Services from Eureka (--eurekaserverURL).
  - name: eureka
    kind: registry
    builtin: registry/eureka
`

// inPod reports whether this process runs in a pod of Kubernetes, with a service account.
// Source: Kubernetes, "Accessing the Kubernetes API from a Pod".
func inPod(environ []string) bool {
	_, err := os.Stat("/var/run/secrets/kubernetes.io/serviceaccount/token")
	return err == nil && ofPod(environ)
}

// ofPod reports whether an environment is that of a process in a pod.
func ofPod(environ []string) bool {
	return slices.ContainsFunc(environ, func(v string) bool {
		name, host, _ := strings.Cut(v, "=")
		return name == "KUBERNETES_SERVICE_HOST" && host != ""
	})
}

// shorthand is a setting that stands for a field of the config of built-in plugins.
type shorthand struct {
	setting  string
	value    any
	builtins []string
	field    string
	// shared: it is true of all of them. Otherwise it goes to one of the first built-in, and to
	// those beside it.
	shared bool
}

// servers is a list of one; the zero value: of none.
func servers(url string) [1]string { return [1]string{url} }

// shorthands of what was given. One whose value is the default is none: a set may say otherwise.
func shorthands(in settings.Inputs) (given []shorthand, err error) {
	usual := settings.Defaults().Inputs
	err = absolute(&in)
	readers := []string{"config/kubernetes", "registry/kubernetes", "registry/clusters", "controller/exports",
		"config/mesh", "authenticator/kubernetes", "config/secrets", "controller/ca", "controller/injector",
		"controller/validator", "controller/gateway", "controller/untaint"}
	for _, s := range []struct {
		shorthand
		usual any
	}{
		{shorthand{"configDir", in.ConfigDir, []string{"config/file"}, "dir", false}, ""},
		{shorthand{"trustCreationTimestamp", in.TrustCreationTimestamp, []string{"config/file"},
			"trustCreationTimestamp", false}, usual.TrustCreationTimestamp},
		{shorthand{"meshConfig", in.MeshConfig, []string{"config/mesh"}, "meshConfig", false}, ""},
		{shorthand{"networksConfig", in.NetworksConfig, []string{"config/mesh"}, "networksConfig", false}, ""},
		{shorthand{"dualStack", in.DualStack, []string{"generator/istio", "registry/kubernetes"}, "dualStack", true}, usual.DualStack},
		{shorthand{"consulserverURL", in.ConsulServerURL, []string{"registry/consul"}, "address", false}, ""},
		{shorthand{"eurekaserverURL", servers(in.EurekaServerURL), []string{"registry/eureka"}, "servers", false}, [1]string{}},
		{shorthand{"kubeconfig", in.Kubeconfig, readers, "kubeconfig", true}, ""},
		{shorthand{"kubernetesApiQPS", in.QPS, readers, "qps", true}, usual.QPS},
		{shorthand{"kubernetesApiBurst", in.Burst, readers, "burst", true}, usual.Burst},
		{shorthand{"clusterID", in.ClusterID, []string{"registry/kubernetes", "registry/clusters",
			"registry/serviceentry", "authenticator/kubernetes", "controller/dns", "controller/gateway",
			"controller/ingress", "controller/injector"}, "cluster", false}, usual.ClusterID},
		{shorthand{"namespace", in.Namespace, []string{"config/mesh", "registry/clusters", "controller/addresses",
			"controller/ca", "controller/injector", "controller/status", "controller/validator", "controller/gateway",
			"controller/ingress", "controller/registration", "controller/analysis", "controller/untaint",
			"controller/exports"}, "namespace", true}, usual.Namespace},
		{shorthand{"namespace", in.Namespace, []string{"registry/kubernetes"}, "systemNamespace", true}, usual.Namespace},
		{shorthand{"clusterRegistriesNamespace", in.Remotes.Namespace, []string{"registry/clusters"}, "namespace", false}, ""},
		{shorthand{"clusterKubeconfigs", in.Remotes.Kubeconfigs, []string{"registry/clusters", "registry/kubernetes",
			"controller/exports", "authenticator/kubernetes", "config/secrets"}, "directory", false}, ""},
		{shorthand{"sharedMeshConfig", in.SharedMeshConfig, []string{"config/mesh"}, "sharedConfigMap", false}, ""},
		{shorthand{"domain", in.Domain, []string{"registry/kubernetes", "controller/exports"}, "domain", false}, usual.Domain},
		{shorthand{"domain", in.Domain, []string{"config/gatewayapi", "config/ingress", "controller/dns", "controller/ingress"}, "domain", true}, usual.Domain},
		{shorthand{"nodeTaint", in.Untaint.Taint, []string{"controller/untaint"}, "taint", false}, ""},
		{shorthand{"cniNamespace", in.Untaint.CNINamespace, []string{"controller/untaint"}, "cniNamespace", false}, ""},
		{shorthand{"revision", in.Revision, []string{"config/kubernetes", "registry/kubernetes",
			"controller/injector", "controller/validator", "controller/status", "controller/gateway",
			"controller/analysis", "controller/exports"}, "revision", false}, ""},
	} {
		if s.value != s.usual && !reflect.ValueOf(s.value).IsZero() {
			given = append(given, s.shorthand)
		}
	}
	aliases, failed := in.Aliases()
	if len(aliases) > 0 {
		given = append(given, shorthand{"clusterAliases", aliases, []string{"generator/istio", "generator/grpc",
			"generator/sds", "authenticator/kubernetes"}, "clusterAliases", false})
	}
	given = append(given, modulesOf(in.Modules)...)
	callers, wrong := callersOf(in.Callers)
	trust, bad := trustOf(in)
	given = append(append(given, signersOf(in.Callers.Signing)...), trust...)
	return append(given, callers...), errors.Join(err, failed, wrong, bad)
}

// absolute makes paths absolute, as plugins have folders of their own.
func absolute(in *settings.Inputs) (err error) {
	path := func(name string, p *string) {
		if *p == "" || err != nil {
			return
		}
		if *p, err = filepath.Abs(*p); err != nil {
			err = fmt.Errorf("--%s: %w", name, err)
		}
	}
	path("configDir", &in.ConfigDir)
	path("meshConfig", &in.MeshConfig)
	path("networksConfig", &in.NetworksConfig)
	path("kubeconfig", &in.Kubeconfig)
	path("clusterKubeconfigs", &in.Remotes.Kubeconfigs)
	path("modulesDir", &in.Modules.Dir)
	return err
}

// modulesOf are what has a set fetch modules for Envoys without an agent.
func modulesOf(m settings.Modules) (given []shorthand) {
	fetches := []string{"config/modules"}
	if m.Dir != "" {
		given = append(given, shorthand{"modulesDir", m.Dir, fetches, "directory", false})
	}
	if blocked := m.BlockedCIDRs(); len(blocked) > 0 {
		given = append(given, shorthand{"modulesBlocked", blocked, fetches, "blockedCIDRs", false})
	}
	return given
}

// set returns the plugins that a text names, with the config that flags stand for.
func set(in settings.Inputs, name string, text []byte) (*manifest.Set, error) {
	s, err := manifest.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if name == kubernetesSet && in.ConfigDir != "" {
		if s, err = fromFiles(s); err != nil {
			return nil, err
		}
	}
	return configured(s, in, name)
}

// trialSet returns the plugins that run beside another control plane, to be compared with it: none
// that writes and, if there is a ConfigDir, none that reads Istio's resources from elsewhere.
func trialSet(in settings.Inputs, name string, text []byte) (*manifest.Set, error) {
	s, err := manifest.Parse(name, text)
	if err == nil && in.ConfigDir != "" {
		s, err = fromFiles(s)
	}
	if err != nil {
		return nil, err
	}
	if s, err = configured(s, in, name); err != nil {
		return nil, err
	}
	return s.Of(slices.DeleteFunc(slices.Clone(s.Plugins), func(e *manifest.Entry) bool { return e.Kind.Proto().Acts() })), nil
}

// configured adds to a set what flags stand for.
func configured(s *manifest.Set, in settings.Inputs, name string) (*manifest.Set, error) {
	if name == kubernetesSet && !in.Callers.Signing.CAServer {
		s = without(s, "controller/ca")
	}
	given, err := shorthands(in)
	if err != nil {
		return nil, err
	}
	if name == kubernetesSet && in.Revision != "" && in.Revision != "default" { // as istiod names it
		given = append(given, shorthand{"revision", "istio-" + in.Revision, []string{"config/mesh"}, "configMap", false})
	}
	if name == kubernetesSet && in.Webhooks {
		given = append(given, hooksOf(in)...)
	}
	for _, short := range given {
		if err := short.configure(s, in.ConfigDir != ""); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if in.Plugins == "" {
			short.enable(s)
		}
	}
	if err := errors.Join(writes(s, in, name), answersNames(s, in, name)); err != nil {
		return nil, err
	}
	if in.ReadOnly {
		turnOff(s)
	}
	if err := tellUninjected(s, in); err != nil {
		return nil, err
	}
	for _, e := range s.Plugins {
		if e.ForEach != nil && e.ForEach.Keys["wait"].Line == 0 {
			e.ForEach.Wait = in.Remotes.Timeout
		}
	}
	return s, nil
}

// hooksOf are what a port for webhooks has the set for a cluster do: answer them, and keep the root
// in the revision's configurations.
func hooksOf(in settings.Inputs) []shorthand {
	return []shorthand{
		{"httpsAddr", []any{webhooks.Injector(in.Revision)}, []string{"controller/injector"}, "webhooks", false},
		{"httpsAddr", []any{webhooks.Validator(in.Revision)}, []string{"controller/validator"}, "webhooks", false},
	}
}

// tellUninjected tells those that read objects of a cluster why no plugin puts proxies into pods,
// where none does: no controller of somebody else's either, which may.
func tellUninjected(s *manifest.Set, in settings.Inputs) error {
	why := ""
	switch injects := slices.ContainsFunc(s.Plugins, func(e *manifest.Entry) bool {
		return !e.Disabled && e.Kind.Proto().Acts() && (e.Builtin == "" || e.Builtin == "controller/injector")
	}); {
	case in.ReadOnly:
		why = "it writes nothing in any cluster (--readOnly)"
	case !in.Webhooks:
		why = "no API server asks it (no --httpsAddr)"
	case !injects:
		why = "no controller/injector runs"
	default:
		return nil
	}
	for _, e := range s.Builtins("config/kubernetes") {
		var said struct{ Uninjected *string }
		if json.Unmarshal(e.Config, &said) == nil && said.Uninjected != nil {
			continue
		}
		if err := e.SetConfig(map[string]any{"uninjected": why}); err != nil {
			return err
		}
	}
	return nil
}

// answersWebhooks reports whether a plugin of a set that runs may answer webhooks: the two built-in
// ones that do, or a controller of somebody else's.
func answersWebhooks(s *manifest.Set) bool {
	return slices.ContainsFunc(s.Plugins, func(e *manifest.Entry) bool {
		return !e.Disabled && e.Kind.Proto().Acts() && (e.Builtin == "" || e.Builtin == "controller/injector" || e.Builtin == "controller/validator")
	})
}

// fromFiles has config/file (the default set's, if there is none) in the place of config/kubernetes
// and what else reads Istio's resources, as istiod reads them from a directory alone if it has one,
// and nobody who would write them.
func fromFiles(s *manifest.Set) (*manifest.Set, error) {
	other, err := manifest.Parse("plugins.yaml (built in)", coxswain.DefaultSet())
	if err != nil {
		return nil, err
	}
	var entries []*manifest.Entry
	if len(s.Builtins("config/file")) == 0 {
		entries = other.Builtins("config/file")
	}
	for _, e := range s.Plugins {
		if !slices.Contains([]string{"config/kubernetes", "config/etcd", "config/git", "config/xds",
			"controller/addresses", "controller/analysis", "controller/ingress", "controller/registration",
			"controller/status", "controller/untaint"}, e.Builtin) {
			entries = append(entries, e)
		}
	}
	return s.Of(entries), nil
}

// without is the set without the entries of a built-in plugin.
func without(s *manifest.Set, builtin string) *manifest.Set {
	return s.Of(slices.DeleteFunc(slices.Clone(s.Plugins), func(e *manifest.Entry) bool { return e.Builtin == builtin }))
}

// writes enables what makes or changes objects in a cluster, where settings ask for it: gateways'
// deployments, agents' entries, findings in statuses, and nodes without a taint.
func writes(s *manifest.Set, in settings.Inputs, name string) error {
	for _, of := range []struct {
		on               bool
		setting, builtin string
	}{
		{in.ManageGateways, "manageGateways", "controller/gateway"},
		{in.AutoRegistration, "autoRegistration", "controller/registration"},
		{in.Analysis, "enableAnalysis", "controller/analysis"},
		{in.Untaint.Nodes, "untaintNodes", "controller/untaint"},
	} {
		if !of.on {
			continue
		}
		entries := s.Builtins(of.builtin)
		if len(entries) == 0 {
			return fmt.Errorf("%s: --%s has no one to go to: no plugin is `builtin: %s`", name, of.setting, of.builtin)
		}
		for _, e := range entries {
			e.Disabled = false
		}
	}
	return nil
}

// dnsPlugin is the built-in plugin that answers DNS queries.
const dnsPlugin = "controller/dns"

// answersNames has the set's controller/dns answer where a setting says so.
func answersNames(s *manifest.Set, in settings.Inputs, name string) error {
	if in.DNSAddr == "" {
		return nil
	}
	entries := s.Builtins(dnsPlugin)
	if len(entries) != 1 {
		return fmt.Errorf("%s: --dnsAddr is for one plugin that is `builtin: %s`; there are %d", name, dnsPlugin, len(entries))
	}
	entries[0].Disabled, entries[0].Listen = false, nil
	for _, network := range []string{"udp", "tcp"} {
		var at manifest.Listen
		if err := at.UnmarshalText([]byte(network + "://" + in.DNSAddr)); err != nil {
			return fmt.Errorf("dnsAddr: want IP:PORT, such as 127.0.0.1:15053, not %q", in.DNSAddr)
		}
		entries[0].Listen = append(entries[0].Listen, at)
	}
	return nil
}

// turnOff disables what would write in a cluster: all controllers, whoever made them, but for the
// built-in one that asks and writes nothing in any.
func turnOff(s *manifest.Set) {
	for _, e := range s.Plugins {
		if e.Kind.Proto().Acts() && !e.Disabled && e.Builtin != dnsPlugin {
			e.Disabled, e.Off = true, "nothing is written in any cluster (--readOnly)"
		}
	}
}

// configure sets the field in the set. A file may go to one entry alone; what is true of a cluster
// goes to all that read it.
func (h shorthand) configure(s *manifest.Set, fromFiles bool) error {
	var entries, alone []*manifest.Entry
	for i, b := range h.builtins {
		for _, e := range s.Builtins(b) {
			switch {
			case h.field == "cluster" && e.ForEach != nil: // rows say which clusters these read
				continue
			case len(h.builtins) > 1 && b == "config/mesh" && !readsConfigMap(e):
				continue
			}
			entries = append(entries, e)
			if i == 0 && e.ForEach == nil {
				alone = append(alone, e)
			}
		}
	}
	switch {
	case len(entries) == 0 && (h.setting == "revision" && fromFiles || h.setting == "namespace" ||
		slices.Contains([]string{"nodeTaint", "cniNamespace"}, h.setting)):
		return nil // files are of every revision, the namespace is that of operators, too, and istiod is told these in any case
	case len(entries) == 0 && h.setting == "domain" && h.builtins[0] == "config/gatewayapi":
		return nil // the domain is that of the registries, which have been asked
	case len(entries) == 0:
		return fmt.Errorf("--%s has no one to go to: no plugin is `builtin: %s`", h.setting, strings.Join(h.builtins, "` or `builtin: "))
	case len(alone) > 1 && !h.shared:
		return fmt.Errorf("--%s could go to %s or %s: both are `builtin: %s`; write it into their config",
			h.setting, alone[0].Name, alone[1].Name, h.builtins[0])
	}
	for _, e := range entries {
		if err := e.SetConfig(map[string]any{h.field: h.value}); err != nil {
			return err
		}
	}
	return nil
}

// readsConfigMap reports whether an entry of config/mesh asks an API server.
func readsConfigMap(e *manifest.Entry) bool {
	var c struct{ ConfigMap, SharedConfigMap string }
	return json.Unmarshal(e.Config, &c) == nil && c.ConfigMap+c.SharedConfigMap != ""
}
