package config

import (
	"strings"

	extensions "istio.io/api/extensions/v1alpha1"
	typev1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Tables of extensions.
const (
	TrafficExtensions = "extensions.istio.io/TrafficExtension"
	WasmPlugins       = "extensions.istio.io/WasmPlugin"
)

// PluginMark stands after the name of a TrafficExtension that was made of a WasmPlugin. No
// resource's own name holds a tilde; EnvoyFilters name filters with it.
const PluginMark = "~istio-translated-wasmplugin"

// Extension is a filter that somebody brought along. A WasmPlugin is one too: its key and name end
// with PluginMark.
type Extension struct {
	Meta
	Spec *extensions.TrafficExtension
	// Version changes with what is written, for agents that fetch code again then.
	Version string
}

// ParseTrafficExtension reads a row.
func ParseTrafficExtension(row *pb.Row) (*Extension, error) {
	e := &Extension{Meta: parseMeta(row), Spec: &extensions.TrafficExtension{}, Version: version(row)}
	return e, unmarshal(row, e.Spec)
}

// ParseWasmPlugin reads a row.
func ParseWasmPlugin(row *pb.Row) (*Extension, error) {
	p := &extensions.WasmPlugin{}
	e := &Extension{Meta: parseMeta(row), Version: version(row)}
	e.Key, e.Name = e.Key+PluginMark, e.Name+PluginMark
	if err := unmarshal(row, p); err != nil {
		return nil, err
	}
	e.Spec = &extensions.TrafficExtension{
		Selector:     p.Selector,
		TargetRefs:   p.TargetRefs,
		Phase:        extensions.TrafficExtension_ExecutionPhase(p.Phase),
		Priority:     p.Priority,
		FilterConfig: &extensions.TrafficExtension_Wasm{Wasm: modules.ConfigOf(p)},
	}
	if p.TargetRef != nil && len(p.TargetRefs) == 0 {
		e.Spec.TargetRefs = []*typev1.PolicyTargetReference{p.TargetRef}
	}
	for _, m := range p.Match {
		e.Spec.Match = append(e.Spec.Match, &extensions.TrafficSelector{Mode: m.Mode, Ports: m.Ports})
	}
	return e, nil
}

// ExtensionRow is the table and the key of the row that an extension's key means.
func ExtensionRow(key string) (table, row string) {
	if row, ok := strings.CutSuffix(key, PluginMark); ok {
		return WasmPlugins, row
	}
	return TrafficExtensions, key
}

// Module is the key of the row of the extension's module, which is there or not.
func (e *Extension) Module() string {
	if name, ok := strings.CutSuffix(e.Name, PluginMark); ok {
		return modules.Key("WasmPlugin", e.Namespace, name)
	}
	return modules.Key("TrafficExtension", e.Namespace, e.Name)
}

// ParseModule reads a row of modules that are there for proxies which can't fetch them.
func ParseModule(row *pb.Row) (modules.Row, error) { return modules.Parse(row.Key, row.Payload) }

// NamesExtension reports whether a filter's name is that of the extension of a key.
func NamesExtension(filter, key string) bool {
	return strings.HasSuffix(filter, "/"+strings.Replace(key, "/", ".", 1))
}

// For reports whether it is for a workload in a namespace with labels.
func (e *Extension) For(namespace string, labels map[string]string) bool {
	return istio.AttachesTo(e.Spec.GetTargetRefs(), e.Spec.GetSelector().GetMatchLabels(), e.Namespace == namespace, labels)
}
