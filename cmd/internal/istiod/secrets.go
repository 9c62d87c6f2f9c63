package istiod

import (
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	api "istio.io/api/mesh/v1alpha1"
)

// DeclareSecrets says which fields of Istio's messages are secret whatever they are named: those of
// environments of extensions. It says, too, of which messages the payloads of tables are, so that
// they can be looked through.
func DeclareSecrets() {
	redact.Declare("istio.extensions.v1alpha1.EnvVar.value")
	for _, k := range kinds {
		redact.DeclareRows(k.table, k.spec.ProtoReflect().Descriptor().FullName())
	}
	redact.DeclareRows(state.Mesh, (*api.MeshConfig)(nil).ProtoReflect().Descriptor().FullName())
	redact.DeclareRows(state.Networks, (*api.MeshNetworks)(nil).ProtoReflect().Descriptor().FullName())
}
