package istiod

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"google.golang.org/protobuf/proto"
	extensions "istio.io/api/extensions/v1alpha1"
	api "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	proxyconfig "istio.io/api/networking/v1beta1"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"
)

// kind is a kind of config objects: its table, GROUP/KIND, the version that istiod reads, and what
// its spec is.
type kind struct {
	table, version string
	spec           proto.Message
}

func (k kind) group() string { group, _, _ := strings.Cut(k.table, "/"); return group }

func (k kind) name() string { _, name, _ := strings.Cut(k.table, "/"); return name }

// Tables that have pages of their own.
const (
	authorizations = "security.istio.io/AuthorizationPolicy"
	telemetries    = "telemetry.istio.io/Telemetry"
)

// kinds are Istio's, in order of names.
var kinds = []kind{
	{authorizations, "v1", (*security.AuthorizationPolicy)(nil)},
	{"networking.istio.io/DestinationRule", "v1", (*networking.DestinationRule)(nil)},
	{"networking.istio.io/EnvoyFilter", "v1alpha3", (*networking.EnvoyFilter)(nil)},
	{"networking.istio.io/Gateway", "v1", (*networking.Gateway)(nil)},
	{"security.istio.io/PeerAuthentication", "v1", (*security.PeerAuthentication)(nil)},
	{"networking.istio.io/ProxyConfig", "v1beta1", (*proxyconfig.ProxyConfig)(nil)},
	{"security.istio.io/RequestAuthentication", "v1", (*security.RequestAuthentication)(nil)},
	{"networking.istio.io/ServiceEntry", "v1", (*networking.ServiceEntry)(nil)},
	{"networking.istio.io/Sidecar", "v1", (*networking.Sidecar)(nil)},
	{telemetries, "v1", (*telemetry.Telemetry)(nil)},
	{"extensions.istio.io/TrafficExtension", "v1alpha1", (*extensions.TrafficExtension)(nil)},
	{"networking.istio.io/VirtualService", "v1", (*networking.VirtualService)(nil)},
	{"extensions.istio.io/WasmPlugin", "v1alpha1", (*extensions.WasmPlugin)(nil)},
	{"networking.istio.io/WorkloadEntry", "v1", (*networking.WorkloadEntry)(nil)},
	{"networking.istio.io/WorkloadGroup", "v1", (*networking.WorkloadGroup)(nil)},
}

type (
	object struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Metadata   metadata `json:"metadata"`
		Spec       message  `json:"spec"`
	}
	metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace,omitempty"`
		Created     *time.Time        `json:"creationTimestamp,omitempty"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
)

// objects are those of a kind whose specs can be read, in order of namespaces and names.
func (s *source) objects(k kind) []object {
	all := []object{}
	if s.SecretTable(k.table) {
		return all
	}
	for _, r := range s.sorted(k.table) {
		spec := k.spec.ProtoReflect().New().Interface()
		if proto.Unmarshal(r.Payload, spec) != nil {
			continue // /debug/configs says what is wrong
		}
		m := metadata{Name: r.Key, Labels: redact.Map(r.Labels), Annotations: redact.Map(r.Annotations)}
		if namespace, name, ok := strings.Cut(r.Key, "/"); ok {
			m.Namespace, m.Name = namespace, name
		}
		if r.Created != 0 {
			t := time.Unix(0, r.Created).UTC().Truncate(time.Second)
			m.Created = &t
		}
		all = append(all, object{k.name(), k.group() + "/" + k.version, m, message{spec}})
	}
	return all
}

// configz shows config objects as Kubernetes has them.
func (s *source) configz(w http.ResponseWriter, _ *http.Request) {
	all := []object{}
	for _, k := range kinds {
		all = append(all, s.objects(k)...)
	}
	write(w, all)
}

// resourcesz shows the kinds of which objects are read.
func (s *source) resourcesz(w http.ResponseWriter, _ *http.Request) {
	type named struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	}
	tables := map[string]bool{}
	for _, t := range s.Tables() {
		tables[t.Name] = true
	}
	all := []named{}
	for _, k := range kinds {
		if tables[k.table] {
			all = append(all, named{k.group(), k.version, k.name()})
		}
	}
	write(w, all)
}

// policy is an object as istiod's own indexes have it.
type policy struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Spec        message           `json:"spec"`
}

// policies are the objects of a table by namespace.
func (s *source) policies(table string) map[string][]policy {
	all := map[string][]policy{}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.table == table })
	for _, o := range s.objects(kinds[i]) {
		all[o.Metadata.Namespace] = append(all[o.Metadata.Namespace], policy{o.Metadata.Name, o.Metadata.Namespace, o.Metadata.Annotations, o.Spec})
	}
	return all
}

func (s *source) authorizationz(w http.ResponseWriter, _ *http.Request) {
	write(w, map[string]any{"authorization_policies": map[string]any{"namespace_to_policies": s.policies(authorizations), "root_namespace": s.rootNamespace()}})
}

func (s *source) telemetryz(w http.ResponseWriter, _ *http.Request) {
	all := s.policies(telemetries)
	for _, list := range all {
		for i := range list {
			list[i].Annotations = nil
		}
	}
	write(w, map[string]any{"telemetries": map[string]any{"namespace_to_telemetries": all, "root_namespace": s.rootNamespace()}})
}

// settings reads the row of a table of the mesh's settings into a message; false: there is none.
func (s *source) settings(table string, into proto.Message) bool {
	rows := s.Rows(table)
	i := slices.IndexFunc(rows, func(r *pb.Row) bool { return r.Key == table })
	return i >= 0 && proto.Unmarshal(rows[i].Payload, into) == nil
}

func (s *source) rootNamespace() string {
	m := &api.MeshConfig{}
	s.settings(state.Mesh, m)
	return cmp.Or(m.RootNamespace, s.root)
}

// mesh shows the mesh's settings.
func (s *source) mesh(w http.ResponseWriter, _ *http.Request) {
	m := &api.MeshConfig{}
	if !s.settings(state.Mesh, m) {
		http.Error(w, "there are no settings of a mesh: no plugin publishes them (config/mesh)", http.StatusNotFound)
		return
	}
	write(w, message{m})
}

// networkz shows the gateways of networks that the mesh's settings name by address.
func (s *source) networkz(w http.ResponseWriter, _ *http.Request) {
	type gateway struct { // those that are named by address have no more than the first three
		Network        string
		Addr           string
		Port           uint32
		Cluster        string
		HBONEPort      uint32
		ServiceAccount struct{ Namespace, Name string }
	}
	networks := &api.MeshNetworks{}
	s.settings(state.Networks, networks)
	var all []gateway
	for name, n := range networks.Networks {
		for _, g := range n.Gateways {
			if address := g.GetAddress(); address != "" {
				all = append(all, gateway{Network: name, Addr: address, Port: g.Port})
			}
		}
	}
	slices.SortFunc(all, func(a, b gateway) int { return cmp.Or(cmp.Compare(a.Network, b.Network), cmp.Compare(a.Addr, b.Addr)) })
	write(w, all)
}
