package mesh

import (
	api "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
)

// Defaults is meshdefaults.Defaults: what counts where nobody says otherwise.
func Defaults() *api.MeshConfig { return meshdefaults.Defaults() }
