package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/disk"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/view"
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

	// writing is for all below; neither the disk nor mu is ever waited for with it.
	writing sync.Mutex
	log     *Log
	conns   map[Key]uint64
	left    map[string]uint64
	unseen  map[Key]bool // of before a restart
	pins    []*kept
	filed   filing
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
	h.filed.disk = disk.New(h.ring)
	if cfg.Dir == "" {
		return h, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), openPatience)
	defer cancel()
	err, late := disk.On(ctx, h.filed.disk, h.open)
	if late != nil {
		return nil, fmt.Errorf("stateDir: %s: %w for %v; mend it, or name another directory", cfg.Dir, late, openPatience)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// open opens the file of the directory, and reads it.
func (h *History) open() error {
	cfg := h.cfg
	f, aside, err := openFile(cfg.Dir)
	if err != nil {
		return fmt.Errorf("stateDir: %w", err)
	}
	if err := h.load(f); err != nil {
		why := err
		f.abandon(damageOf(why))
		if aside, err = setAside(f.path); err != nil {
			return fmt.Errorf("stateDir: %w", errors.Join(why, err))
		}
		if f, err = open(f.path); err != nil {
			return fmt.Errorf("stateDir: %w", err)
		}
		h.log, h.pins, h.stage.kept, h.number = newLog(bounds{cfg.Revisions, cfg.Bytes}), nil, nil, 0
		if err := h.load(f); err != nil {
			return fmt.Errorf("stateDir: %w", err)
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
			h.cfg.Log.Warn("resources of a pin have something secret in them, so that they were not kept: they are as they are live",
				"revision", p.Revision, "proxies", p.Proxies, "resources", len(names), "first", names[0])
		}
	}
	return nil
}

func (h *History) load(f *file) (err error) {
	h.filed.file, h.log.ops = f, &ops{}
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
			if err := h.Close(); err != nil {
				h.cfg.Log.Warn("what was noted last is not in the history's file", "error", err)
			}
			return nil
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
	return saves(h).tryPause()
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
	left := h.newest(0).left
	left[node] = max(left[node], connection)
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

// Flush writes down what was noted until now, if the disk does it in time.
func (h *History) Flush() {
	if h == nil {
		return
	}
	ctx, cancel := waiting()
	defer cancel()
	h.take()
	h.writeStage(ctx)
	_ = saves(h).save(ctx, false) // which is said, and tried again
}

// waiting is for as long as the disk may take for all that one caller asks.
func waiting() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), disk.Patience)
}

// take takes in, in memory, what was noted until now. It is written down by Run.
func (h *History) take() {
	h.writing.Lock()
	defer h.writing.Unlock()
	whole, reached := h.drain()
	for _, b := range whole {
		h.write(b)
	}
	for _, p := range reached {
		h.log.Note(p)
	}
	if len(whole)+len(reached) > 0 {
		h.filed.unsaved = true
		h.ring()
	}
}

// write takes a batch in.
func (h *History) write(b *batch) {
	var all []Shown
	if b.push != nil {
		h.log.Begin(*b.push)
		all = h.departed(b.shown)
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
	for node, connection := range b.left {
		h.left[node] = max(h.left[node], connection)
	}
}

// departed are nodes that have gone, as far as none of their connections has come back, nor is
// shown something now: they have nothing from the next revision on.
func (h *History) departed(shown map[Key]Shown) (gone []Shown) {
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
		if _, back := shown[k]; !back {
			gone = append(gone, Shown{Key: k})
			delete(h.conns, k)
			delete(h.unseen, k)
		}
	}
	return gone
}

// At returns what was served at a revision. The error says which there are.
func (h *History) At(number uint64) (*Image, error) {
	if h == nil {
		return nil, errOff
	}
	ctx, cancel := waiting()
	defer cancel()
	h.take()
	return saves(h).at(ctx, number)
}

var errOff = errors.New("no history is kept (historyRevisions is 0)")

// at reads from the file what memory lacks. What was dropped meanwhile, or lost with the file, it
// looks for once more: it is in memory then, or gone.
func (h saver) at(ctx context.Context, number uint64) (*Image, error) {
	for again := false; ; again = true {
		d, err := h.drafted(number)
		if err != nil {
			return nil, err
		}
		var found map[string]*view.Body
		if len(d.lacks) > 0 {
			found, err = h.read(ctx, d.lacks)
		}
		if err == nil {
			var im *Image
			if im, err = d.image(found); err == nil {
				return im, nil
			}
		}
		if again || errors.Is(err, disk.ErrLate) {
			return nil, fmt.Errorf("revision %d: part of it is in the history's file alone: %w", number, err)
		}
	}
}

func (h saver) drafted(number uint64) (*draft, error) {
	h.writing.Lock()
	defer h.writing.Unlock()
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
	return h.log.draft(number)
}

// Pin keeps a pin until Unpin, in the place of one of the same proxies. note says what is wrong all
// the same: that it won't outlive a restart.
func (h *History) Pin(p Pin) (im *Image, note string, err error) {
	if h == nil {
		return nil, "", errOff
	}
	ctx, cancel := waiting()
	defer cancel()
	h.take()
	if im, err = saves(h).at(ctx, p.Revision); err != nil {
		return nil, "", err
	}
	if err = keepPin(h, p, im); err != nil {
		return nil, "", err
	}
	_ = saves(h).save(ctx, true) // Doubt says what is wrong with it
	if note = h.Doubt(); note == "" {
		note = lacks(h, im)
	}
	return im, note, nil
}

// lacks says which resources of an image don't outlive a restart; empty: none.
func lacks(h *History, im *Image) string {
	h.writing.Lock()
	defer h.writing.Unlock()
	names := im.secretive(h.log)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, of %d resources that have something secret in them, does not outlive a restart: after one they are as they are live",
		names[0], len(names))
}

// Doubt says why pins may not outlive a restart; empty: they do.
func (h *History) Doubt() string {
	if h == nil {
		return ""
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	switch {
	case h.cfg.Dir == "":
		return "it ends with this control plane: without stateDir nothing outlives a restart"
	case h.filed.trouble.fault != "":
		return "it may not outlive a restart: " + h.filed.trouble.fault
	}
	return ""
}

func keepPin(h *History, p Pin, im *Image) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.unpin(p.Proxies)
	if len(h.pins) >= mostPins {
		return fmt.Errorf("there are %d pins already; take some away by coxswain unpin", mostPins)
	}
	h.log.keep(im, 1)
	h.pins = append(h.pins, &kept{p, im})
	h.log.ops.pin(&p, im)
	return nil
}

// Unpin forgets pins by their proxies. note says what is wrong all the same: that a restart may
// bring them back.
func (h *History) Unpin(proxies ...string) (note string) {
	if h == nil {
		return ""
	}
	h.take()
	h.writing.Lock()
	for _, p := range proxies {
		h.unpin(p)
	}
	h.writing.Unlock()
	ctx, cancel := waiting()
	defer cancel()
	if err := saves(h).save(ctx, true); err != nil {
		note = "a restart may bring it back: " + err.Error()
	}
	return note
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

// LetGo is for when memory is short. It forgets what nodes had that have gone, without waiting for
// the next revision; of what came and went within the newest one nothing is left. Where no node has
// gone it forgets the oldest revisions, until about so many bytes less are kept, or one is left,
// and logs that. What is served, and what pins serve, stays.
func (h *History) LetGo(bytes uint64) {
	if h == nil {
		return
	}
	h.take()
	h.writing.Lock()
	gone, forgotten := h.departed(nil), 0
	if len(gone) > 0 {
		h.log.Record(gone)
	} else {
		forgotten = h.log.shrink(bytes)
	}
	if len(gone)+forgotten > 0 {
		h.filed.unsaved = true
		h.ring()
	}
	h.writing.Unlock()
	if forgotten > 0 {
		h.cfg.Log.Warn("memory is short: the oldest revisions are forgotten", "revisions", forgotten)
	}
}

// Summary is how much is kept, and where.
func (h *History) Summary() report.History {
	out := report.History{Revisions: []report.Kept{}}
	if h == nil {
		out.Fault = errOff.Error()
		return out
	}
	h.take()
	h.writing.Lock()
	defer h.writing.Unlock()
	out.Fault, out.Bytes, out.MostBytes, out.MostRevisions = h.filed.trouble.fault, h.log.bytes, h.cfg.Bytes, h.cfg.Revisions
	if h.cfg.Dir != "" {
		out.File = filepath.Join(h.cfg.Dir, FileName)
	}
	for i, e := range h.log.entries {
		k := report.Kept{Push: e.push, Kept: true, Unchanged: i > 0 && e.empty()}
		out.Revisions = append(out.Revisions, k)
	}
	return out
}
