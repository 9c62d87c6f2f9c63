package server

import (
	"log/slog"
	"strings"
	"testing"
)

// TestRecentLines: the last lines of the log are kept, within bounds, whatever is logged.
func TestRecentLines(t *testing.T) {
	r := &recent{}
	log := slog.New(r.handler(slog.DiscardHandler))
	for range mostLines + 10 {
		log.Info("x")
	}
	log.Debug("not this")
	log.Info("last")
	if all := r.all(); len(all) != mostLines || !strings.Contains(all[mostLines-1], "msg=last") {
		t.Errorf("%d lines", len(all))
	}
	for range 3 {
		log.Info(strings.Repeat("y", mostSize/2))
	}
	if all := r.all(); len(all) != 1 || r.size > mostSize {
		t.Errorf("%d lines, %d bytes", len(all), r.size)
	}
}
