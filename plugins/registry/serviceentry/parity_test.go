package serviceentry

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// assignment is what the test needs of an expected ClusterLoadAssignment.
type assignment struct {
	Name      string `json:"cluster_name"`
	Endpoints []struct {
		Members []struct {
			Endpoint struct {
				Address struct {
					Socket struct {
						Address string `json:"address"`
						Port    uint32 `json:"port_value"`
					} `json:"socket_address"`
					Pipe struct {
						Path string `json:"path"`
					} `json:"pipe"`
				} `json:"address"`
			} `json:"endpoint"`
			Weight   uint32 `json:"load_balancing_weight"`
			Metadata struct {
				Filter struct {
					Match struct {
						TLSMode string `json:"tlsMode"`
					} `json:"envoy.transport_socket_match"`
					Istio struct {
						Workload string `json:"workload"`
					} `json:"istio"`
				} `json:"filter_metadata"`
			} `json:"metadata"`
		} `json:"lb_endpoints"`
		Locality struct {
			Region, Zone string
			SubZone      string `json:"sub_zone"`
		} `json:"locality"`
	} `json:"endpoints"`
}

// TestEndpointsAsIstiodHasThem compares rows with the endpoints that istiod served for whole
// configurations.
func TestEndpointsAsIstiodHasThem(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(shared.Dir(t, "parity/cases"), "*"))
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, dir := range cases {
		if ruled(t, dir) {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) { compared += compareCase(t, dir) })
	}
	if compared < 100 {
		t.Errorf("only %d clusters were compared", compared)
	}
}

// ruled reports whether rules change endpoints: those of other networks are replaced by gateways,
// policies take mutual TLS away, and localities without a share get nothing.
func ruled(t *testing.T, dir string) bool {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "networks.yaml")); err == nil {
		return true
	}
	files, _ := filepath.Glob(filepath.Join(dir, "config/*"))
	return slices.ContainsFunc(files, func(file string) bool {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(content), "kind: PeerAuthentication") || strings.Contains(string(content), "distribute:")
	})
}

func compareCase(t *testing.T, dir string) (compared int) {
	rows := rowsOf(t, dir)
	answers, _ := filepath.Glob(filepath.Join(dir, "expected/*.json"))
	for _, file := range answers {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ EDS map[string]assignment }
		if err := json.Unmarshal(content, &answer); err != nil {
			t.Fatal(err)
		}
		for _, a := range answer.EDS {
			parts := strings.Split(a.Name, "|")
			if len(parts) != 4 || parts[2] != "" {
				continue // subsets are the rules' matter
			}
			want := a.lines()
			got := rows[parts[3]+"|"+parts[1]]
			if !slices.ContainsFunc(slices.Collect(maps.Values(got)), func(g []string) bool { return slices.Equal(g, want) }) && len(got)+len(want) > 0 {
				t.Errorf("%s: %s: istiod %q, rows %q", filepath.Base(file), a.Name, want, got)
			}
			compared++
		}
	}
	return compared
}

func (a assignment) lines() (out []string) {
	for _, l := range a.Endpoints {
		locality := strings.Trim(l.Locality.Region+"/"+l.Locality.Zone+"/"+l.Locality.SubZone, "/")
		for _, m := range l.Members {
			address, tls := m.Endpoint.Address.Socket.Address, m.Metadata.Filter.Match.TLSMode
			if m.Endpoint.Address.Pipe.Path != "" {
				address = hosts.Unix + m.Endpoint.Address.Pipe.Path
			}
			if tls == "" {
				tls = hosts.TLSModeDisabled
			}
			out = append(out,
				fmt.Sprint(address, " ", m.Endpoint.Address.Socket.Port, " ", m.Weight, " ", m.Metadata.Filter.Istio.Workload, " ", tls, " ", locality))
		}
	}
	slices.Sort(out)
	return out
}

// rowsOf derives a case's endpoints: by HOST|PORT and namespace.
func rowsOf(t *testing.T, dir string) map[string]map[string][]string {
	var b state.Builder
	m := &pb.State{Whole: true}
	files, _ := filepath.Glob(filepath.Join(dir, "config/*"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range kinds.Read(file, content) {
			if d.Row != nil {
				m.Tables = append(m.Tables, &pb.TableRows{Table: d.Table, Upserts: []*sdk.Row{d.Row}})
			}
		}
	}
	change, err := b.Apply(m)
	if err != nil {
		t.Fatal(err)
	}
	s := &shard{rows: map[rowName]*sdk.Row{}}
	if err := newDeriver(Config{Cluster: "Kubernetes"}).Derive(t.Context(), change, s); err != nil {
		t.Errorf("faults: %v", err)
	}
	out := map[string]map[string][]string{}
	for n, r := range s.rows {
		if n.Table != state.Endpoints {
			continue
		}
		e, err := sdk.EndpointOf(r)
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint(e.Host, "|", e.ServicePort)
		if out[key] == nil {
			out[key] = map[string][]string{}
		}
		service, revision := hosts.Canonical(e.Labels, e.Workload)
		out[key][e.Namespace] = append(out[key][e.Namespace], fmt.Sprint(e.Address, " ", e.Port, " ", max(1, e.Weight), " ",
			strings.Join([]string{e.Workload, e.Namespace, service, revision, e.Cluster}, ";"), " ", e.TlsMode, " ", e.Locality))
	}
	for _, by := range out {
		for _, list := range by {
			slices.Sort(list)
		}
	}
	return out
}
