package main

import (
	"github.com/coxswain-mesh/coxswain/sdk"
)

// builtins are the plugins that this binary can run, each in a process of its own. This is the only place that links them.
func builtins() map[string]func() sdk.Plugin {
	return map[string]func() sdk.Plugin{}
}
