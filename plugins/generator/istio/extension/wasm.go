package extension

import (
	"encoding/json"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	wasmhttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	wasmtcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/wasm/v3"
	wasm "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	extensions "istio.io/api/extensions/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
)

// What agents read in a VM's environment, and take out of it.
const (
	pullSecret = "ISTIO_META_WASM_IMAGE_PULL_SECRET"
	pullPolicy = "ISTIO_META_WASM_IMAGE_PULL_POLICY"
	resource   = "ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION"
)

// fetchTimeout is how long an agent may take to fetch code.
const fetchTimeout = 30 * time.Second

func (e *Extension) wasm(from *config.Extension, c *extensions.WasmConfig) error {
	code, err := source(c)
	if err != nil {
		return err
	}
	filter := filterOf(c, settingsOf(from, c, code, true))
	e.discover(c.Type == extensions.PluginType_NETWORK, c.FailStrategy == extensions.FailStrategy_FAIL_OPEN)
	remote := code.GetRemote()
	unknown := remote != nil && remote.Sha256 == ""
	if unknown {
		remote.Sha256 = unknownSum
	}
	e.Direct = named(e.Name, encode.Any(filter))
	e.Config = e.Direct
	if unknown {
		remote.Sha256 = ""
		e.Config = named(e.Name, encode.Wrap(filter)) // what Envoy gets is what the agent makes of it
	}
	return nil
}

// Holding is the filter's configuration for a proxy without an agent, with the module's bytes in
// it. Until what the resource names now is there, it is what the resource said when these were
// fetched. nil: it is no module of this filter. An Envoy would fetch the module itself, if it was
// told where, but lets requests pass meanwhile (decisions/modules.md).
func (e *Extension) Holding(m modules.Module, bytes []byte) proto.Message {
	now := e.spec.GetWasm()
	had, err := m.Config()
	if now == nil || err != nil || had.Type != now.Type {
		return nil
	}
	if modules.Same(now, had) {
		had = now
	}
	code := &core.AsyncDataSource{Specifier: &core.AsyncDataSource_Local{Local: &core.DataSource{
		Specifier: &core.DataSource_InlineBytes{InlineBytes: bytes},
	}}}
	return named(e.Name, encode.Any(filterOf(had, settingsOf(e.from, had, code, false))))
}

func filterOf(c *extensions.WasmConfig, config *wasm.PluginConfig) proto.Message {
	if c.Type == extensions.PluginType_NETWORK {
		return &wasmtcp.Wasm{Config: config}
	}
	return &wasmhttp.Wasm{Config: config}
}

func settingsOf(from *config.Extension, c *extensions.WasmConfig, code *core.AsyncDataSource, agent bool) *wasm.PluginConfig {
	return &wasm.PluginConfig{
		Name:          from.Namespace + "." + from.Name,
		RootId:        c.PluginName,
		Configuration: configuration(c.PluginConfig),
		FailurePolicy: failurePolicy(c.FailStrategy),
		Vm: &wasm.PluginConfig_VmConfig{VmConfig: &wasm.VmConfig{
			Runtime:              "envoy.wasm.runtime.v8",
			Code:                 code,
			EnvironmentVariables: environment(c, from.Version, agent),
		}},
	}
}

func named(name string, config *anypb.Any) *core.TypedExtensionConfig {
	return &core.TypedExtensionConfig{Name: name, TypedConfig: config}
}

// unknownSum stands for the checksum of code that has none given, for proxies without an agent:
// Envoy refuses an empty one, agents put theirs in its place.
const unknownSum = "nil"

// source says where code is: in a file of the proxy's, or where an agent fetches it from.
func source(c *extensions.WasmConfig) (*core.AsyncDataSource, error) {
	u, err := modules.URL(c)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "file" {
		return &core.AsyncDataSource{Specifier: &core.AsyncDataSource_Local{Local: &core.DataSource{
			Specifier: &core.DataSource_Filename{Filename: strings.TrimPrefix(c.Url, "file://")},
		}}}, nil
	}
	return &core.AsyncDataSource{Specifier: &core.AsyncDataSource_Remote{Remote: &core.RemoteDataSource{
		HttpUri: &core.HttpUri{
			Uri:     u.String(),
			Timeout: durationpb.New(fetchTimeout),
			// Envoy asks for a cluster; the agent fetches without one.
			HttpUpstreamType: &core.HttpUri_Cluster{Cluster: "_"},
		},
		Sha256: c.Sha256,
	}}}, nil
}

// configuration is what the code is given: JSON as text, or nothing.
func configuration(s *structpb.Struct) *anypb.Any {
	if len(s.GetFields()) == 0 {
		return &anypb.Any{}
	}
	text, err := json.Marshal(s.AsMap())
	if err != nil {
		return &anypb.Any{} // numbers that JSON can't write are in no file
	}
	return encode.Any(wrapperspb.String(string(text)))
}

func failurePolicy(s extensions.FailStrategy) wasm.FailurePolicy {
	switch s {
	case extensions.FailStrategy_FAIL_OPEN:
		return wasm.FailurePolicy_FAIL_OPEN
	case extensions.FailStrategy_FAIL_RELOAD:
		return wasm.FailurePolicy_FAIL_RELOAD
	}
	return wasm.FailurePolicy_FAIL_CLOSED
}

// environment is what the code finds in its environment and, where there is an agent, what that
// needs to fetch it. Secrets are no resources here: an agent is told that there is one, and nothing
// of it, as where istiod can't find it.
func environment(c *extensions.WasmConfig, version string, agent bool) *wasm.EnvironmentVariables {
	out := &wasm.EnvironmentVariables{KeyValues: map[string]string{}}
	for _, v := range c.GetVmConfig().GetEnv() {
		switch v.ValueFrom {
		case extensions.EnvValueSource_INLINE:
			out.KeyValues[v.Name] = v.Value
		case extensions.EnvValueSource_HOST:
			out.HostEnvKeys = append(out.HostEnvKeys, v.Name)
		}
	}
	if !agent {
		return out
	}
	if c.ImagePullSecret != "" {
		out.KeyValues[pullSecret] = ""
	}
	if c.ImagePullPolicy != extensions.PullPolicy_UNSPECIFIED_POLICY {
		out.KeyValues[pullPolicy] = c.ImagePullPolicy.String()
	}
	out.KeyValues[resource] = version
	return out
}
