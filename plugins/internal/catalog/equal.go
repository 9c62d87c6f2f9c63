package catalog

import (
	"bytes"
	"maps"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// equal reports whether two rows say the same, their place included: people look it up.
func equal(a, b *sdk.Row) bool {
	return a == b || a.Source == b.Source && a.Created == b.Created && a.Undated == b.Undated && bytes.Equal(a.Payload, b.Payload) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}
