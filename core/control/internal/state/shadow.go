package state

import (
	"github.com/coxswain-mesh/coxswain/core/control/internal/trial"
	"github.com/coxswain-mesh/coxswain/core/environment"
)

// Shadow is what a session says that is not served.
type Shadow = trial.Shadow[*Connection]

// NewShadow returns one with these rows.
func NewShadow(rows environment.Tables) *Shadow { return trial.NewShadow[*Connection](rows) }
