package mesh

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"k8s.io/client-go/dynamic"
)

// Source is the mesh's settings as a config source.
type Source struct {
	config Config
	// objects reads the ConfigMaps; nil: there are none.
	objects dynamic.Interface
}

// New returns the source of a config. It asks nothing of the API server yet; an error is of the
// field kubeconfig.
func New(c Config) (*Source, error) {
	s := &Source{config: c}
	if len(c.configMaps()) == 0 {
		return s, nil
	}
	var err error
	_, s.objects, err = c.Objects("coxswain/config-mesh")
	return s, err
}

// Run publishes the settings and then what changes, until ctx ends. While the API server can't be
// asked at first, nothing is published.
func (s *Source) Run(ctx context.Context, out sdk.Publisher) error {
	s.config.Report(ctx, out)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	r := &run{config: s.config, out: out, faultSet: kinds.NewFaultSet(time.Now)}
	maps, err := newConfigMaps(s.objects, s.config.Namespace, s.config.configMaps(), out)
	if err != nil {
		return err
	}
	r.settings = settingsOf(&s.config, maps)
	w, err := watch.New(s.config.Settle, r.concerns)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	w.Wake(maps.changes.Some())
	r.watcher = w
	running.Go(func() { maps.run(ctx) })
	if err = maps.wait(ctx, out); err == nil {
		err = r.run(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// settingsOf returns both settings. Their layers are those of istiod, in its order: the shared
// ConfigMap, then the file, or else the ConfigMap.
func settingsOf(c *Config, maps *configMaps) []*setting {
	layers := func(path, key string) (out []*layer) {
		if c.SharedConfigMap != "" {
			out = append(out, keyLayer(maps, c.SharedConfigMap, key))
		}
		switch {
		case path == os.DevNull:
		case path != "":
			out = append(out, fileLayer(path))
		case c.ConfigMap != "":
			out = append(out, keyLayer(maps, c.ConfigMap, key))
		}
		return out
	}
	return []*setting{
		{table: state.Mesh, kind: MeshConfig, check: rules.Check, layers: layers(c.MeshConfig, meshKey)},
		{table: state.Networks, kind: MeshNetworks, check: rules.Check, layers: layers(c.NetworksConfig, networksKey)},
	}
}

// run is one run of a source.
type run struct {
	config   Config
	out      sdk.Publisher
	settings []*setting
	watcher  *watch.Watcher
	// published is what was published last, by table.
	published map[string]*sdk.Row
	faultSet  kinds.FaultSet
}

// concerns reports whether a path of an event may be one of the files, or the link by which
// Kubernetes swaps them.
func (r *run) concerns(path string) bool {
	for _, s := range r.settings {
		if slices.ContainsFunc(s.layers, func(l *layer) bool { return l.path == path }) {
			return true
		}
	}
	return filepath.Base(path) == "..data"
}

func (r *run) run(ctx context.Context) error {
	r.published = make(map[string]*sdk.Row)
	if err := r.look(time.Now()); err != nil {
		return err
	}
	if err := r.out.Synced(); err != nil {
		return err
	}
	for {
		if _, err := r.watcher.Next(ctx, r.deadline(time.Now())); err != nil {
			return err
		}
		if err := r.look(time.Now()); err != nil {
			return err
		}
	}
}

func (r *run) patience() time.Duration { return goneFor * r.config.Settle }

// deadline returns when to look without an event.
func (r *run) deadline(now time.Time) time.Time {
	var next time.Time
	if r.config.Rescan > 0 {
		next = now.Add(r.config.Rescan)
	}
	for _, s := range r.settings {
		since := s.missing()
		if since.IsZero() {
			continue
		}
		if end := since.Add(r.patience()); next.IsZero() || end.Before(next) {
			next = end
		}
	}
	return next
}

// look reads all layers, which are small, and publishes what changed.
func (r *run) look(now time.Time) error {
	var faults []kinds.Fault
	r.watcher.Sweep()
	for _, s := range r.settings {
		for _, l := range s.layers {
			r.watch(l.path)
		}
		s.look(now, r.patience())
		faults = append(faults, s.faults...)
		if err := r.publish(s); err != nil {
			return err
		}
	}
	return r.tell(r.faultSet.Show(faults))
}

// watch watches the file's directory. It may be swapped, or come later: then rescans find it.
func (r *run) watch(path string) {
	if path == "" {
		return
	}
	dir := filepath.Dir(path)
	if err := r.watcher.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.out.Log(sdk.Warn, "a directory cannot be watched; its changes are found by rescans alone", "dir", dir, "error", err.Error())
	}
}

func (r *run) publish(s *setting) error {
	was := r.published[s.table]
	if was != nil && was.Source == s.row.Source && bytes.Equal(was.Payload, s.row.Payload) {
		return nil
	}
	r.published[s.table] = s.row
	r.out.Log(sdk.Info, "settings are read", "table", s.table, "source", s.row.Source)
	return r.out.Update(s.table, []*sdk.Row{s.row}, nil)
}

// tell publishes faults and logs those that are new.
func (r *run) tell(c kinds.FaultChange) error {
	for _, f := range c.New {
		f.Log(r.out.Log)
	}
	if c.Healed {
		r.out.Log(sdk.Info, "nothing is wrong with the mesh's settings any more")
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return r.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}
