package host

import (
	"fmt"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// SecretTable reports whether a table's rows are secrets. What a plugin has said of one counts for
// as long as the host runs.
func (h *Host) SecretTable(name string) bool { return h.secrets.Has(name) }

// recorders listen to sessions that will begin, by the plugin's name.
type recorders struct {
	mu sync.Mutex
	of map[string]*recording.Writer
}

// Record writes all messages of a plugin's sessions that begin from now on, until stop is called.
// Of one plugin one recording is made at a time.
func (h *Host) Record(plugin string, to *recording.Writer) (stop func(), err error) {
	r := &h.recorders
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[plugin] != nil {
		return nil, fmt.Errorf("plugin %s is being recorded already", plugin)
	}
	if r.of == nil {
		r.of = map[string]*recording.Writer{}
	}
	r.of[plugin] = to
	return func() {
		to.End()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.of, plugin)
	}, nil
}

// tapped is a plugin's carrier, with an ear to it if it is to be recorded. Of its environment, as
// of its config, no text is to be read in a recording.
func (h *Host) tapped(e *manifest.Entry, c session.Carrier) session.Carrier {
	r := &h.recorders
	r.mu.Lock()
	defer r.mu.Unlock()
	if to := r.of[e.Name]; to != nil {
		return recording.Tap(c, to.Session(&h.secrets, h.launcher.environment(e, func(string) bool { return true })...))
	}
	return c
}
