package state

import (
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/trial"
)

// Shadow is what a session says that is not served.
type Shadow = trial.Shadow[*Connection]

func NewShadow(rows environment.Tables) *Shadow { return trial.NewShadow[*Connection](rows) }

// Rival is what is said of a plugin that is not served, while another one is under its name.
type Rival struct {
	// Rules by which it would serve proxies.
	Rules Rules
	// Made is what it would make of views, if it is a patch.
	Made *patch.Made
	// Warm: it was served, and is kept.
	Warm bool
}
