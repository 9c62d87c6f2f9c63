package server

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control"
)

// lookAtStart is how often it is said what a start waits for.
const lookAtStart = 5 * time.Second

// starting says what the start waits for, and how many rows have come so far, until proxies are
// served: a first sync of many files or objects takes a while.
func starting(ctx context.Context, log *slog.Logger, ready func() []string, rows func() map[string]control.PluginRows) {
	began := time.Now()
	tick := time.NewTicker(lookAtStart)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		reasons := ready()
		if len(reasons) == 0 {
			return
		}
		come := 0
		for _, of := range rows() {
			come += of.Rows
		}
		log.Info("starting", "waits for", strings.Join(reasons, "; "), "rows", come, "since", time.Since(began).Round(time.Second))
	}
}
