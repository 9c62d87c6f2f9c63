package process

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// hcLog gives go-plugin's lines to slog, at level debug: what matters of them is in errors and in
// the plugin's state.
type hcLog struct {
	hclog.Logger // Does nothing; for the methods that go-plugin does not need.
	to           *slog.Logger
}

func newHCLog(to *slog.Logger) hclog.Logger {
	return &hcLog{Logger: hclog.NewNullLogger(), to: to}
}

func (l *hcLog) Log(_ hclog.Level, text string, args ...any) {
	l.to.Log(context.Background(), slog.LevelDebug, text, args...)
}

func (l *hcLog) Trace(string, ...any)           {}
func (l *hcLog) Debug(text string, args ...any) { l.Log(hclog.Debug, text, args...) }
func (l *hcLog) Info(text string, args ...any)  { l.Log(hclog.Info, text, args...) }
func (l *hcLog) Warn(text string, args ...any)  { l.Log(hclog.Warn, text, args...) }
func (l *hcLog) Error(text string, args ...any) { l.Log(hclog.Error, text, args...) }
func (l *hcLog) Named(string) hclog.Logger      { return l }
func (l *hcLog) ResetNamed(string) hclog.Logger { return l }
func (l *hcLog) With(args ...any) hclog.Logger {
	return &hcLog{Logger: l.Logger, to: l.to.With(args...)}
}
