package file

import (
	"bytes"
	"cmp"
	"maps"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// equal reports whether two rows say the same, their place included: people look it up.
func equal(a, b *sdk.Row) bool {
	return a == b || a.Source == b.Source && a.Created == b.Created && bytes.Equal(a.Payload, b.Payload) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

func compare(a, b string) int { return strings.Compare(a, b) }

func byPlace(a, b kinds.Fault) int {
	return cmp.Or(compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), compare(a.Error(), b.Error()))
}
