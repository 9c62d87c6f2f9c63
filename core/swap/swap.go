// Package swap changes plugins while proxies stay connected: it starts the new instance beside the
// old one, compares what they say, lets the new one take over in one step, and keeps the old one
// warm until it is clear that proxies take what the new one makes. It follows plugins.yaml, too.
package swap

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// Config of a Swapper.
type Config struct {
	Control *control.Control
	Host    *host.Host
	// Set is what runs at the start.
	Set *manifest.Set
	// File is the plugins.yaml that is followed and written to; empty: there is none, and all that
	// commands change is gone with the process.
	File string
	// Text is what Set was parsed from, Parse makes a set of another text.
	Text  []byte
	Parse func(text []byte) (*manifest.Set, error)
	Log   *slog.Logger
	// Ended is told the State that each change ended in; optional.
	Ended func(plugin, outcome string)
	// Free returns how much memory may still be used; nil: nobody knows.
	Free func() (bytes uint64, known bool)
	// Audit keeps who changed what; may be nil.
	Audit *audit.Log
}

// Swapper changes plugins, one at a time. It is what is asked from outside; each of its parts knows
// those above it alone.
type Swapper struct {
	cfg     Config
	turn    turn
	history *history
	// dryRuns knows those that only look.
	dryRuns *dryRuns
	running *running
	file    *document
	desired *desired
	editor  *editor
	pasts   *pasts
	windows *windows
	changer *changer
	// follower has the turn again and again, for the file and for rows.
	follower *follower
}

// New checks the config. Run must be called.
func New(cfg Config) (*Swapper, error) {
	if cfg.Control == nil || cfg.Host == nil || cfg.Set == nil || cfg.Log == nil || cfg.Parse == nil {
		return nil, errors.New("swap: Control, Host, Set, Parse and Log are needed")
	}
	if cfg.Ended == nil {
		cfg.Ended = func(string, string) {}
	}
	if cfg.Free == nil {
		cfg.Free = func() (uint64, bool) { return 0, false }
	}
	s := &Swapper{cfg: cfg, turn: newTurn(), history: newHistory(cfg.Log, cfg.Audit, cfg.Ended), running: &running{set: cfg.Set}, dryRuns: &dryRuns{}}
	s.file = &document{path: cfg.File, parse: cfg.Parse, log: cfg.Log, set: cfg.Set, text: cfg.Text}
	s.desired = &desired{running: s.running, log: cfg.Log, applied: cfg.Set}
	s.editor = &editor{file: s.file, desired: s.desired, running: s.running, dir: cfg.Set.Dir(), find: cfg.Host.Find, meaning: cfg.Host.Meaning}
	s.pasts = newPasts(s.file, cfg.Set)
	s.windows = newWindows(s.turn, s.running, s.file, s.editor, s.pasts)
	s.changer = &changer{
		control: cfg.Control, host: cfg.Host, log: cfg.Log, free: cfg.Free, running: s.running, history: s.history,
		pasts: s.pasts, windows: s.windows,
	}
	s.follower = &follower{
		control: cfg.Control, host: cfg.Host, log: cfg.Log, turn: s.turn,
		running: s.running, file: s.file, desired: s.desired, windows: s.windows, changer: s.changer,
	}
	return s, nil
}

// Run follows the file until ctx ends, and then waits for what is under way.
func (s *Swapper) Run(ctx context.Context) error {
	defer s.windows.end()
	select {
	case <-s.cfg.Control.Gathered():
		s.follower.first(ctx)
	case <-s.cfg.Control.Started():
	case <-ctx.Done():
		return nil
	}
	select {
	case <-s.cfg.Control.Started():
	case <-ctx.Done():
		return nil
	}
	var rows sync.WaitGroup
	defer rows.Wait()
	rows.Go(func() { s.follower.followRows(ctx) })
	if s.file.path == "" {
		<-ctx.Done()
		return nil
	}
	return s.follower.follow(ctx)
}

// History returns the last changes of a plugin, the newest last.
func (s *Swapper) History(name string) []*Change { return s.history.of(name) }

// Entries returns what is declared, in order; disabled ones too.
func (s *Swapper) Entries() []*manifest.Entry { return s.running.now().Plugins }

// FileFault is what is wrong with plugins.yaml as it is now; empty: nothing.
func (s *Swapper) FileFault() string { return s.file.faults() }

// Misfits are the rows that there are no instances for.
func (s *Swapper) Misfits() []manifest.Misfit { return s.desired.unfit() }

// Reread applies the file as it is now.
func (s *Swapper) Reread(ctx context.Context) { s.follower.reread(ctx) }
