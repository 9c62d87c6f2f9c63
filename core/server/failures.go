package server

import (
	"context"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/host"
)

// transition counts the steps of plugins' lives, and keeps in the audit log that one which served
// has failed: it is another process that serves then.
func (g *ground) transition(t host.Transition) {
	g.metrics.transition(t)
	if t.From != host.Serving || t.To != host.Failed {
		return
	}
	is := audit.Entry{At: t.At, What: "failure", Plugin: t.Plugin, Outcome: "started again"}
	if t.Err != nil {
		first, _, _ := strings.Cut(t.Err.Error(), "\n")
		is.Reasons = []string{first}
	}
	g.audit.Add(audit.Acting(context.Background(), audit.ByCrash), is)
}
