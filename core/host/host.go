package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/family"
	"github.com/coxswain-mesh/coxswain/core/host/load"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/mask"
	"github.com/coxswain-mesh/coxswain/internal/artifact"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
)

// Config of a Host.
type Config struct {
	// Set is what to run.
	Set *manifest.Set
	// Exe is the binary that runs built-ins, as `EXE plugin KIND/NAME`.
	Exe string
	// RuntimeDir is where sockets and private directories live, in a directory of this process's
	// own.
	RuntimeDir string
	// ArtifactDir keeps plugins that were fetched from registries; empty: RuntimeDir does, in
	// artifacts.
	ArtifactDir string
	// Environ is the core's environment, of which plugins get what is allowed by name.
	Environ []string
	// Epoch is told to plugins.
	Epoch uint64
	// Sessions takes over what is ready.
	Sessions Sessions
	// Served is closed when the first revision is served. Controllers and authenticators that start
	// on demand start no earlier: nothing of that revision is theirs. Generators do, or nobody
	// would know yet which types they serve. Nil: they start with the others.
	Served <-chan struct{}
	// Describe returns what a built-in answers to a Hello, so that one that starts on demand need
	// not run to say it. Nil: each starts once.
	Describe func(builtin string, hello *pb.Hello) (*pb.Ready, error)
	// Starter starts processes; nil: real ones.
	Starter Starter
	// Alone: this process starts nothing but plugins, so that all orphans are theirs. It adopts
	// them then.
	Alone   bool
	Backoff Backoff
	// Memory is how much a plugin's process may use whose entry doesn't say; 0: no limit.
	Memory manifest.Size
	// Secrets learns what of the plugins' configs and environments is secret; may be nil.
	Secrets *mask.Secrets
	Log     *slog.Logger
	// OnTransition, if set, is called at each step of a plugin's life, one at a time for each
	// plugin. It must not block.
	OnTransition func(Transition)
}

// Transition is a step in a plugin's life.
type Transition struct {
	Plugin   string
	From, To State
	At       time.Time
	// Err is why it failed; of one that is Gone, that it had to be killed.
	Err error
	// Restart is set for a Starting that follows a failure.
	Restart bool
}

// Host runs a set of plugins.
type Host struct {
	cfg      Config
	launcher *launcher
	// artifacts has what was fetched from registries.
	artifacts *artifact.Store
	family    *family.Family
	groups    groups
	sockets   sockets
	done      chan struct{}
	err       error

	recorders recorders
	secrets   recording.SecretTables
	meters    load.Meters

	mu    sync.Mutex
	slots []*slot
	// running is set while plugins may be started.
	running *running
	open    chan struct{}
}

// running is what a running host has.
type running struct {
	ctx    context.Context
	cancel context.CancelFunc
	dir    *runtimeDir
	all    sync.WaitGroup
	errs   []error
}

// New checks the config. Nothing runs before Run.
func New(cfg Config) (*Host, error) {
	if cfg.Set == nil || cfg.Sessions == nil || cfg.Log == nil {
		return nil, errors.New("host: Set, Sessions and Log are needed")
	}
	relatives := &family.Family{Alone: cfg.Alone, Log: cfg.Log}
	if cfg.Starter == nil {
		cfg.Starter = Processes{Family: relatives}
	}
	if cfg.RuntimeDir == "" {
		return nil, errors.New("host: RuntimeDir is needed")
	}
	if cfg.Exe == "" {
		return nil, errors.New("host: Exe is needed")
	}
	cfg.Backoff = cfg.Backoff.filled()
	dir, err := filepath.Abs(cfg.RuntimeDir)
	if err != nil {
		return nil, fmt.Errorf("host: runtime directory: %w", err)
	}
	cfg.RuntimeDir = dir
	store, err := cfg.store()
	if err != nil {
		return nil, err
	}
	h := &Host{cfg: cfg, launcher: cfg.launcher(), artifacts: store, family: relatives, done: make(chan struct{}), open: make(chan struct{})}
	h.launcher.self = openProgram(cfg.Exe)
	for i, e := range cfg.Set.Plugins {
		if e.Runs() {
			h.slots = append(h.slots, newSlot(e, i, cfg.Log, cfg.OnTransition))
		}
	}
	return h, nil
}

// Run starts all plugins at once and keeps them running until ctx ends; then it asks them to end,
// and returns when all are gone. It returns an error only if the start failed: each plugin that
// isn't optional and failed before it served is a *StartError in it. Run is called once.
func (h *Host) Run(ctx context.Context) error {
	defer close(h.done)
	h.err = h.run(ctx)
	return h.err
}

func (h *Host) run(ctx context.Context) error {
	dir, err := openRuntimeDir(h.cfg.RuntimeDir)
	if err != nil {
		return fmt.Errorf("host: runtime directory: %w", err)
	}
	defer dir.remove()
	h.groups.open()
	defer h.groups.close()
	defer h.sockets.close()
	defer h.adopt(ctx)()
	if h.launcher.self != nil {
		defer h.launcher.self.Close()
	}
	r := &running{dir: dir}
	r.ctx, r.cancel = context.WithCancel(ctx)
	defer r.cancel()
	h.mu.Lock()
	h.running = r
	for _, s := range h.slots {
		h.begin(s)
	}
	r.all.Go(func() { dir.tend(r.ctx, h.cfg.Log) })
	h.mu.Unlock()
	close(h.open)
	<-r.ctx.Done()
	h.mu.Lock()
	h.running = nil // nothing starts any more
	h.mu.Unlock()
	r.all.Wait()
	return errors.Join(r.errs...)
}

// adopt sweeps what killed cores left running and, if the core is alone, takes the orphans that
// plugins make. The function that it returns ends that.
func (h *Host) adopt(ctx context.Context) (end func()) {
	if swept := family.Sweep(); swept > 0 {
		h.cfg.Log.Warn("processes that plugins of a killed core had left were killed", "processes", swept)
	}
	if !h.cfg.Alone {
		return func() {}
	}
	if err := family.Adopt(); err != nil {
		h.cfg.Log.Warn("what plugins start may outlive them: orphans can't be adopted", "error", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { h.family.Collect(ctx) })
	return func() {
		stop()
		done.Wait()
	}
}

// begin keeps a slot's plugin running, until its context ends. The lock is held.
func (h *Host) begin(s *slot) {
	r := h.running
	ctx, cancel := context.WithCancel(r.ctx)
	s.stop = cancel
	r.all.Go(func() {
		defer close(s.gone)
		defer cancel()
		for !h.ended(s, r, h.keep(ctx, s, r.dir)) {
		}
	})
}

// waitServed waits until a slot's plugin may start, or ctx ends.
func (h *Host) waitServed(ctx context.Context, s *slot) {
	e := s.entry
	if h.cfg.Served == nil || e.Start != manifest.OnDemand || !e.Kind.Proto().Asked() {
		return
	}
	select {
	case <-h.cfg.Served:
	case <-ctx.Done():
	}
}

// EndControllers ends the controllers, and returns when they are gone: what they give up then, such
// as a Lease, other plugins still write.
func (h *Host) EndControllers() {
	h.mu.Lock()
	var ending []*slot
	if h.running != nil {
		for _, s := range h.slots {
			if s.entry.Kind.Proto().Acts() {
				s.stop()
				ending = append(ending, s)
			}
		}
	}
	h.mu.Unlock()
	for _, s := range ending {
		<-s.gone
	}
}

// ended reports whether a slot's plugin is not to be started again, and notes why. One that took a
// place just as it failed goes on.
func (h *Host) ended(s *slot, r *running, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.err = err
	switch {
	case err == nil:
	case !s.isProven():
		r.errs = append(r.errs, err)
		r.cancel()
	case slices.Contains(h.slots, s):
		return false
	}
	s.over = true
	return true
}

// Dir waits until the host runs, and returns its private directory.
func (h *Host) Dir(ctx context.Context) (string, error) {
	select {
	case <-h.open:
	case <-h.done:
		return "", errNotRunning
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		return "", errNotRunning
	}
	return h.running.dir.path, nil
}

var errNotRunning = errors.New("the host does not run")

// all returns the plugins of the set, without those beside them.
func (h *Host) all() []*slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.slots)
}

// WaitStarted returns when every plugin that isn't optional has a session, or with the error that
// Run ends with.
func (h *Host) WaitStarted(ctx context.Context) error {
	for _, s := range h.all() {
		if s.entry.Optional {
			continue
		}
		select {
		case <-s.up:
		case <-h.done:
			return h.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// SetState tells that a plugin's session has come further: from syncing to serving. Other steps are
// the host's own and are ignored here, as is a plugin that isn't there.
func (h *Host) SetState(plugin string, to State) {
	for _, s := range h.all() {
		if s.entry.Name == plugin && to == Serving {
			s.serving()
		}
	}
}

// Status returns what is known of each plugin, in the order of the file.
func (h *Host) Status() []Status {
	slots := h.all()
	all := make([]Status, len(slots))
	for i, s := range slots {
		all[i] = s.read()
	}
	return all
}

// StartError is why a plugin did not start.
type StartError struct {
	Entry *manifest.Entry
	Err   error
	// Stderr has the process's last lines of standard error.
	Stderr string
}

// Error implements error.
func (e *StartError) Error() string {
	return fmt.Sprintf("%s: plugin %s: %v", e.Entry.At, e.Entry.Name, withTail(e.Err, e.Stderr))
}

// Unwrap returns the error's cause.
func (e *StartError) Unwrap() error { return e.Err }
