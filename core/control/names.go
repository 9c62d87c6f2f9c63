package control

import (
	"github.com/coxswain-mesh/coxswain/core/control/internal/rollout"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/status"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// The types by which others say what control shall do, and read what it did. They are declared by
// the internal packages that use them.
type (
	// Expected is a plugin that plugins.yaml declares.
	Expected = state.Expected
	// Limits are how long a plugin may take.
	Limits = state.Limits
	// Rules choose the plugins that serve a proxy.
	Rules = state.Rules
	// Held is what is kept back of a plugin until somebody confirms it.
	Held = state.Held
	// Earlier configures what proxies are served that is not the newest.
	Earlier = serving.Earlier
	// Stages configure which proxies try a change before all others get it.
	Stages = rollout.Config
	// Hiding counts the rows of a plugin that are not served.
	Hiding = status.Hiding
	// PluginRows is what control knows of a plugin.
	PluginRows = status.PluginRows
	// NoMetrics counts nothing.
	NoMetrics = state.NoMetrics
	// Stale says since when, and why, what a plugin said last may be out of date.
	Stale = status.Stale
)

// Expect returns what control must know of an entry of plugins.yaml; order is its place there.
func Expect(e *manifest.Entry, order int) Expected { return state.Expect(e, order) }

// ExpectAll returns what control must know of each entry that runs.
func ExpectAll(set *manifest.Set) []Expected { return state.ExpectAll(set) }

// RulesOf returns the rules that a set of entries makes.
func RulesOf(set *manifest.Set) Rules { return state.RulesOf(set) }
