package kinds

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	extensions "istio.io/api/extensions/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	proxyconfig "istio.io/api/networking/v1beta1"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"
)

// Kind is one config kind of Istio's API.
type Kind struct {
	// Table is GROUP/KIND.
	Table string
	// Versions that are served, the one to prefer first. They differ in name alone.
	Versions []string
	spec     proto.Message
}

// Group returns the API group, such as networking.istio.io.
func (k Kind) Group() string { return before(k.Table) }

// Name returns the kind's name, such as VirtualService.
func (k Kind) Name() string { return after(k.Table) }

// New returns an empty spec: a message of istio.io/api.
func (k Kind) New() proto.Message { return k.spec.ProtoReflect().New().Interface() }

// serves reports whether a version of the kind exists.
func (k Kind) serves(version string) bool { return slices.Contains(k.Versions, version) }

// All returns all kinds, sorted by table.
func All() []Kind { return slices.Clone(all[:]) }

// Tables returns the tables of all kinds, sorted.
func Tables() []string {
	names := make([]string, 0, len(all))
	for _, k := range all {
		names = append(names, k.Table)
	}
	return names
}

// Lookup returns the kind of a table.
func Lookup(table string) (Kind, bool) {
	for _, k := range all {
		if k.Table == table {
			return k, true
		}
	}
	return Kind{}, false
}

// all is never changed. Versions are those of istio.io/api's custom resource definitions, and of
// what istiod also reads.
var all = [...]Kind{
	{TrafficExtension, []string{"v1alpha1"}, (*extensions.TrafficExtension)(nil)},
	{WasmPlugin, []string{"v1alpha1"}, (*extensions.WasmPlugin)(nil)},
	{DestinationRule, []string{"v1", "v1beta1", "v1alpha3"}, (*networking.DestinationRule)(nil)},
	{EnvoyFilter, []string{"v1alpha3"}, (*networking.EnvoyFilter)(nil)},
	{Gateway, []string{"v1", "v1beta1", "v1alpha3"}, (*networking.Gateway)(nil)},
	{ProxyConfig, []string{"v1beta1"}, (*proxyconfig.ProxyConfig)(nil)},
	{ServiceEntry, []string{"v1", "v1beta1", "v1alpha3"}, (*networking.ServiceEntry)(nil)},
	{Sidecar, []string{"v1", "v1beta1", "v1alpha3"}, (*networking.Sidecar)(nil)},
	{VirtualService, []string{"v1", "v1beta1", "v1alpha3"}, (*networking.VirtualService)(nil)},
	{WorkloadEntry, []string{"v1", "v1beta1", "v1alpha3"}, (*networking.WorkloadEntry)(nil)},
	{WorkloadGroup, []string{"v1", "v1beta1", "v1alpha3"}, (*networking.WorkloadGroup)(nil)},
	{AuthorizationPolicy, []string{"v1", "v1beta1"}, (*security.AuthorizationPolicy)(nil)},
	{PeerAuthentication, []string{"v1", "v1beta1"}, (*security.PeerAuthentication)(nil)},
	{RequestAuthentication, []string{"v1", "v1beta1"}, (*security.RequestAuthentication)(nil)},
	{Telemetry, []string{"v1", "v1alpha1"}, (*telemetry.Telemetry)(nil)},
}

func before(table string) string { group, _, _ := strings.Cut(table, "/"); return group }

func after(table string) string { _, name, _ := strings.Cut(table, "/"); return name }
