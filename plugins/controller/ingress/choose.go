package ingress

import (
	mesh "istio.io/api/mesh/v1alpha1"
	networking "k8s.io/api/networking/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// wish is what the status of an Ingress is to have.
type wish struct {
	key string
	// verdict reports whether it is served here; has are the addresses in its status, want those
	// that are to be there, if it is.
	verdict   ingress.Verdict
	has, want []ingress.Address
}

// wishes are those of all Ingresses of a state. Rows that can't be read are left as they are.
func (c *Config) wishes(s *state.State) (out []wish) {
	settings := ingress.SettingsOf(settingsOf(s))
	at := c.reached(s, settings.Service)
	for key, row := range s.Table(ingress.Ingress).All() {
		o, err := objects.Decode[networking.IngressSpec](row)
		if err != nil {
			continue
		}
		verdict := settings.Judge(o, func(name string) *networking.IngressClassSpec {
			row := s.Row(ingress.Class, name)
			if row == nil {
				return nil
			}
			class, err := objects.Decode[networking.IngressClassSpec](row)
			if err != nil {
				return nil
			}
			return &class.Spec
		})
		w := wish{key: key, verdict: verdict, has: kinds.Reached(row)}
		if verdict == ingress.Ours {
			w.want = at
		}
		out = append(out, w)
	}
	return out
}

// settingsOf are the mesh's.
func settingsOf(s *state.State) *mesh.MeshConfig {
	if s.Row(state.Mesh, state.Mesh) == nil {
		return meshdefaults.Defaults()
	}
	m, err := kinds.Mesh(s)
	if err != nil {
		return meshdefaults.Defaults()
	}
	return m
}

// reached are the addresses of the service before the gateways.
func (c *Config) reached(s *state.State, service string) []ingress.Address {
	row := s.Row(state.Services, sdk.ServiceKey(c.Gateways, service+"."+c.Gateways+".svc."+c.Domain))
	if row == nil {
		return nil
	}
	of, err := sdk.ServiceOf(row)
	if err != nil {
		return nil
	}
	return ingress.Addresses(of, c.Cluster)
}
