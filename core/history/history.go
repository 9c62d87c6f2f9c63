package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
)

// Config of a History.
type Config struct {
	// Dir is where it is kept on disk; empty: in memory alone.
	Dir string
	// Revisions is how many are kept at most, Bytes how much memory and disk, about, what is not
	// served any more may take.
	Revisions int
	Bytes     int64
	Log       *slog.Logger
}

const (
	// amendPause is how long notes wait that belong to a revision that is written down already:
	// those of proxies that come, and of endpoints.
	amendPause = 2 * time.Second
	// retryPause is how long a file rests that could not be written.
	retryPause = 30 * time.Second
	// returnPatience is how long proxies that were there before a restart may take to come back
	// before they count as gone.
	returnPatience = 5 * time.Minute
	// mostNode is how long a node's ID may be.
	mostNode = 4096
	// mostPins is how many pins there may be.
	mostPins = 32
)

// Pin has proxies served what was served at a revision.
type Pin struct {
	Revision uint64 `json:"revision"`
	// Proxies selects them; empty: all.
	Proxies string `json:"proxies"`
	// Endpoints: they are pinned, too.
	Endpoints bool      `json:"endpoints,omitempty"`
	Since     time.Time `json:"since"`
}

// kept is a pin with what it serves.
type kept struct {
	Pin
	image *Image
}

// History keeps what proxies were served. A nil one keeps nothing.
type History struct {
	cfg   Config
	wake  chan struct{}
	since time.Time

	mu      sync.Mutex // for what is noted on the path of pushes
	pending []*batch
	reached []report.Push
	number  uint64 // the highest revision that was shown
	stage   stages

	writing sync.Mutex // for all below; mu is never waited for with it
	log     *Log
	file    *file
	conns   map[Key]uint64
	left    map[string]uint64
	unseen  map[Key]bool // of before a restart
	pins    []*kept
	trouble trouble
}

// trouble is why the file can't be written; retry, if it is set: it is to be written anew, not
// before this.
type trouble struct {
	fault string
	retry time.Time
}

// batch is what was noted of one revision.
type batch struct {
	number uint64       // of a revision that is being shown; 0: what is noted belongs to the one before
	push   *report.Push // nil: it is not shown whole yet
	shown  map[Key]Shown
	left   map[string]uint64
}

// New opens a history. Of a file that can't be read it says so, and begins anew; the error is that
// there can be none, or that another control plane has it.
func New(cfg Config) (*History, error) {
	if cfg.Revisions <= 0 {
		return nil, nil
	}
	h := &History{
		cfg: cfg, wake: make(chan struct{}, 1), since: time.Now(), log: newLog(bounds{cfg.Revisions, cfg.Bytes}),
		conns: map[Key]uint64{}, left: map[string]uint64{}, unseen: map[Key]bool{},
	}
	if cfg.Dir == "" {
		return h, nil
	}
	f, aside, err := openFile(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("stateDir: %w", err)
	}
	if err := h.load(f); err != nil {
		why := err
		aside = f.path + ".broken-" + time.Now().UTC().Format("20060102-150405.000")
		if err := errors.Join(f.close(), os.Rename(f.path, aside)); err != nil {
			return nil, fmt.Errorf("stateDir: %w", errors.Join(why, err))
		}
		if f, err = open(f.path); err != nil {
			return nil, fmt.Errorf("stateDir: %w", err)
		}
		h.log, h.pins, h.stage.kept, h.number = newLog(bounds{cfg.Revisions, cfg.Bytes}), nil, nil, 0
		if err := h.load(f); err != nil {
			return nil, fmt.Errorf("stateDir: %w", err)
		}
		aside = fmt.Sprintf("%v; it is now %s", why, aside)
	}
	if aside != "" {
		cfg.Log.Error("the history can't be read: it begins anew, and no revision is pinned any more", "error", aside)
	}
	for k := range h.log.places {
		h.unseen[k] = true
	}
	for _, p := range h.pins {
		if names := p.image.secretive(h.log); len(names) > 0 {
			cfg.Log.Warn("resources of a pin have something secret in them, so that they were not kept: they are as they are live", "revision", p.Revision, "proxies", p.Proxies, "resources", len(names), "first", names[0])
		}
	}
	return h, nil
}

func (h *History) load(f *file) (err error) {
	h.file, h.log.ops = f, &ops{}
	h.pins, h.stage.kept, h.number, err = f.load(h.log)
	return err
}

// Number is that of the newest revision that was shown, before a restart too.
func (h *History) Number() uint64 {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.number
}

// Run writes down what is noted, until ctx ends.
func (h *History) Run(ctx context.Context) error {
	if h == nil {
		return nil
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(h.pause())
		select {
		case <-h.wake:
			if h.pause() > 0 {
				continue
			}
		case <-timer.C:
		case <-ctx.Done():
			return h.Close()
		}
		h.Flush()
	}
}

// pause is how long what is noted may wait.
func (h *History) pause() time.Duration {
	h.mu.Lock()
	urgent, any := len(h.reached) > 0 || h.stage.due, false
	for _, b := range h.pending {
		urgent = urgent || b.push != nil
		any = any || len(b.shown) > 0
	}
	h.mu.Unlock()
	switch {
	case urgent:
		return 0
	case any:
		return amendPause
	}
	return retryPause
}

// Close writes down what was noted, and lets go of the file.
func (h *History) Close() error {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.flush()
	if h.file == nil {
		return nil
	}
	f := h.file
	h.file, h.log.ops = nil, nil
	return f.close()
}

func (h *History) ring() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// newest returns the batch to which notes belong of a revision that is being shown; 0: of the one
// before.
func (h *History) newest(number uint64) *batch {
	if n := len(h.pending); n > 0 && (number == 0 || h.pending[n-1].number == number) {
		return h.pending[n-1]
	}
	b := &batch{number: number, shown: map[Key]Shown{}, left: map[string]uint64{}}
	h.pending = append(h.pending, b)
	return b
}

// Note takes what a connection is shown of a type, as part of a revision that is being shown; 0: of
// the one before.
func (h *History) Note(number uint64, s Shown) {
	if h == nil || len(s.Node) == 0 || len(s.Node) > mostNode {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.newest(number)
	if was, ok := b.shown[s.Key]; !ok || was.Connection <= s.Connection {
		b.shown[s.Key] = s
	}
	if len(b.shown) == 1 {
		h.ring()
	}
}

// Left notes that a connection of a node is gone.
func (h *History) Left(node string, connection uint64) {
	if h == nil || len(node) > mostNode {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.newest(0).left[node] = connection
}

// Shown notes that a revision is shown; held: that it is not.
func (h *History) Shown(p report.Push) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number = max(h.number, p.Revision)
	if p.Kind == revision.Endpoints {
		return
	}
	b := h.newest(p.Revision)
	if p.Held {
		b.number = 0
		return
	}
	b.push = &p
	h.ring()
}

// Reached notes whom a revision has reached.
func (h *History) Reached(p report.Push) {
	if h == nil || p.Kind == revision.Endpoints {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reached = append(h.reached, p)
	h.ring()
}

// drain returns what was noted of revisions that are shown whole.
func (h *History) drain() ([]*batch, []report.Push) {
	h.mu.Lock()
	defer h.mu.Unlock()
	whole, reached := h.pending, h.reached
	h.pending, h.reached = nil, nil
	if n := len(whole); n > 0 && whole[n-1].number > 0 && whole[n-1].push == nil {
		whole, h.pending = whole[:n-1], whole[n-1:]
	}
	return whole, reached
}

// Flush writes down what was noted until now.
func (h *History) Flush() {
	if h == nil {
		return
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	h.flush()
}

func (h *History) flush() {
	whole, reached := h.drain()
	for _, b := range whole {
		h.write(b)
	}
	for _, p := range reached {
		h.log.Note(p)
	}
	h.writeStage()
	h.save()
}

// write takes a batch in.
func (h *History) write(b *batch) {
	var all []Shown
	if b.push != nil {
		h.log.Begin(*b.push)
		all = h.departed(b)
	}
	for _, k := range slices.SortedFunc(maps.Keys(b.shown), compareKeys) {
		s := b.shown[k]
		if delete(h.unseen, k); s.Snapshot == nil {
			delete(h.conns, k)
		} else {
			h.conns[k] = s.Connection
		}
		all = append(all, s)
	}
	h.log.Record(all)
	maps.Copy(h.left, b.left)
}

// departed are nodes that have gone, as far as none of their connections has come back: they are
// nobody's from the next revision on.
func (h *History) departed(b *batch) (gone []Shown) {
	away := map[Key]bool{}
	for k := range h.log.places {
		if conn, left := h.left[k.Node]; left && h.conns[k] <= conn {
			away[k] = true
		}
		if h.unseen[k] && time.Since(h.since) > returnPatience {
			away[k] = true
		}
	}
	clear(h.left)
	for _, k := range slices.SortedFunc(maps.Keys(away), compareKeys) {
		if _, back := b.shown[k]; !back {
			gone = append(gone, Shown{Key: k})
			delete(h.conns, k)
			delete(h.unseen, k)
		}
	}
	return gone
}

// save writes to the file what has changed. A file that can't be written is written whole later.
func (h *History) save() {
	if h.file == nil {
		return
	}
	all := h.log.ops.all
	h.log.ops.all = nil
	if !h.trouble.retry.IsZero() {
		if time.Now().Before(h.trouble.retry) {
			return
		}
		all = rewrite(h.log)
		o := &ops{}
		for _, p := range h.pins {
			o.pin(&p.Pin, p.image)
		}
		o.stage(h.stage.kept)
		all = append(all, o.all...)
	}
	if len(all) == 0 {
		return
	}
	if err := h.file.write(all, h.Number()); err != nil {
		h.trouble.retry = time.Now().Add(retryPause)
		if h.trouble.fault == "" {
			h.cfg.Log.Error("the history can't be written: it is kept in memory alone until it can", "error", err)
		}
		h.trouble.fault = err.Error()
		return
	}
	if h.trouble.fault != "" {
		h.cfg.Log.Info("the history is written again", "file", h.file.path)
	}
	h.trouble.fault, h.trouble.retry = "", time.Time{}
	for _, x := range all {
		if x.held != nil && !x.held.withheld {
			x.held.saved = true
			if x.held.now == 0 {
				x.held.body = nil
			}
		}
	}
}

// At returns what was served at a revision. The error says which there are.
func (h *History) At(number uint64) (*Image, error) {
	if h == nil {
		return nil, errOff
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	h.flush()
	return h.at(number)
}

var errOff = errors.New("no history is kept (historyRevisions is 0)")

func (h *History) at(number uint64) (*Image, error) {
	oldest, newest, ok := h.log.Span()
	newest = max(newest, h.Number())
	switch {
	case !ok:
		return nil, errors.New("no revision is kept yet")
	case number > newest:
		return nil, fmt.Errorf("there is no revision %d yet; %d to %d are kept, and coxswain history lists them", number, oldest, newest)
	case number < oldest:
		return nil, fmt.Errorf("revision %d is not kept any more; %d to %d are, and coxswain history lists them", number, oldest, newest)
	}
	return h.log.At(number)
}

// Pin keeps a pin until Unpin, in the place of one of the same proxies. note says what is wrong all
// the same: that it won't outlive a restart.
func (h *History) Pin(p Pin) (im *Image, note string, err error) {
	if h == nil {
		return nil, "", errOff
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	h.flush()
	if im, err = h.at(p.Revision); err != nil {
		return nil, "", err
	}
	h.unpin(p.Proxies)
	if len(h.pins) >= mostPins {
		return nil, "", fmt.Errorf("there are %d pins already; take some away by coxswain unpin", mostPins)
	}
	h.log.keep(im, 1)
	h.pins = append(h.pins, &kept{p, im})
	h.log.ops.pin(&p, im)
	h.save()
	switch {
	case h.file == nil:
		note = "it ends with this control plane: without stateDir nothing outlives a restart"
	case h.trouble.fault != "":
		note = "it may not outlive a restart: " + h.trouble.fault
	default:
		if names := im.secretive(h.log); len(names) > 0 {
			note = fmt.Sprintf("%s, of %d resources that have something secret in them, does not outlive a restart: after one they are as they are live", names[0], len(names))
		}
	}
	return im, note, nil
}

// Unpin forgets a pin.
func (h *History) Unpin(proxies string) {
	if h == nil {
		return
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	h.flush()
	h.unpin(proxies)
	h.save()
}

func (h *History) unpin(proxies string) {
	i := slices.IndexFunc(h.pins, func(p *kept) bool { return p.Proxies == proxies })
	if i < 0 {
		return
	}
	p := h.pins[i]
	h.pins = slices.Delete(h.pins, i, i+1)
	h.log.keep(p.image, -1)
	h.log.ops.pin(&p.Pin, nil)
}

// Pins are the pins with what they serve, older ones first.
func (h *History) Pins() (all []Pin, images []*Image) {
	if h == nil {
		return nil, nil
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	slices.SortStableFunc(h.pins, func(a, b *kept) int { return a.Since.Compare(b.Since) })
	for _, p := range h.pins {
		all, images = append(all, p.Pin), append(images, p.image)
	}
	return all, images
}

// Summary is how much is kept, and where.
func (h *History) Summary() report.History {
	out := report.History{Revisions: []report.Kept{}}
	if h == nil {
		out.Fault = errOff.Error()
		return out
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	h.flush()
	out.Fault, out.Bytes, out.MostBytes, out.MostRevisions = h.trouble.fault, h.log.bytes, h.cfg.Bytes, h.cfg.Revisions
	if h.file != nil {
		out.File = h.file.path
	}
	for i, e := range h.log.entries {
		k := report.Kept{Push: e.push, Kept: true, Unchanged: i > 0 && e.empty()}
		out.Revisions = append(out.Revisions, k)
	}
	return out
}
