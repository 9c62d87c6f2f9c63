package history

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/core/disk"
	"github.com/coxswain-mesh/coxswain/core/view"
)

const (
	// openPatience is how long a file may take to be opened and read when the core starts.
	openPatience = time.Minute
	// lookPause is how often it is looked whether the file is there still.
	lookPause = 30 * time.Second
	// retryPause is how long a file rests that could not be written or made.
	retryPause = 5 * time.Second
	// firstRest is how long no other file is made when a second one was spoilt, twice as long each
	// time, up to mostRest; what was longer ago than that is forgotten. Of each spoilt one some
	// address space stays taken.
	firstRest, mostRest = time.Second, time.Hour
)

// trouble is why the file lacks something.
type trouble struct {
	fault string
	// whole: all is to be written anew, not before retry.
	whole bool
	retry time.Time
	// spoilt is when a file was last, lost how many were. No other is made before until, for rest.
	spoilt, until time.Time
	rest          time.Duration
	lost          int
}

// filing is what a history has of its file. History.writing is for it, but for disk.
type filing struct {
	disk    *disk.Disk
	file    *file // nil: none can be used now
	trouble trouble
	// unsaved: something was taken in since the file was last written.
	unsaved, closed bool
}

// saver is a history as it is written down and read again.
type saver struct{ *History }

func saves(h *History) saver { return saver{h} }

// tryPause is how long the file may be left alone.
func (h saver) tryPause() time.Duration {
	h.writing.Lock()
	defer h.writing.Unlock()
	switch {
	case h.filed.trouble.whole:
		return max(time.Until(h.notBefore()), time.Millisecond)
	case h.filed.unsaved:
		return amendPause
	}
	return lookPause
}

// notBefore is until when a file rests, or the making of another. Writing is held.
func (h saver) notBefore() time.Time {
	at := h.filed.trouble.retry
	if until := h.filed.trouble.until; h.filed.file == nil && until.After(at) {
		return until
	}
	return at
}

// save brings the file up to date; urgent: even if it was to rest. The error says why it is not,
// which is said in the log once.
func (h saver) save(ctx context.Context, urgent bool) error {
	if h.cfg.Dir == "" {
		return nil
	}
	err, late := disk.On(ctx, h.filed.disk, func() error { return h.saving(urgent) })
	if late == nil {
		return err
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	if h.log.ops != nil {
		h.log.ops.all = nil // they would be more and more
	}
	h.filed.trouble.whole, h.filed.trouble.retry = true, time.Now().Add(retryPause)
	err = fmt.Errorf("%s: %w", h.path(), late)
	h.fail(err)
	return err
}

// Faults say whether the file lacks something now, and how many files were lost while they were
// used.
func (h *History) Faults() (now bool, lost int) {
	if h == nil {
		return false, 0
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	return h.filed.trouble.fault != "", h.filed.trouble.lost
}

func (h saver) path() string { return filepath.Join(h.cfg.Dir, FileName) }

// fail notes why the file lacks something. The log has it once until it is written again. Writing
// is held.
func (h saver) fail(err error) {
	if h.filed.trouble.fault == "" {
		h.cfg.Log.Error("the history can't be written: it is kept in memory alone until it can", "error", err)
	}
	h.filed.trouble.fault = err.Error()
}

// saving writes what has changed, all of it if the file is another one than before. It runs on the
// disk's goroutine, and holds no lock while the disk works.
func (h saver) saving(urgent bool) error {
	f, rests := h.current(urgent)
	if rests != nil {
		return rests
	}
	if f == nil {
		return h.begin()
	}
	err := h.writeTo(f)
	if d := (*damage)(nil); errors.As(err, &d) && h.lose(f, d) {
		return h.begin()
	}
	return err
}

// current is the file, if there is one, and why it is to be left alone for now.
func (h saver) current(urgent bool) (*file, error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	t := &h.filed.trouble
	switch {
	case h.filed.closed:
		return nil, errors.New("the control plane ends")
	case t.whole && !urgent && time.Now().Before(h.notBefore()):
		if h.log.ops != nil {
			h.log.ops.all = nil
		}
		return nil, errors.New(t.fault)
	}
	return h.filed.file, nil
}

// writeTo writes what has changed.
func (h saver) writeTo(f *file) error {
	h.writing.Lock()
	all := h.log.ops.all
	h.log.ops.all, h.filed.unsaved = nil, false
	if h.filed.trouble.whole {
		all, h.filed.trouble.whole = h.everything(), false
	}
	h.writing.Unlock()
	var err error
	if len(all) > 0 {
		err = f.write(all, h.Number())
	} else {
		err = f.check()
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	if err != nil {
		h.filed.trouble.whole, h.filed.trouble.retry = true, time.Now().Add(retryPause)
		if d := (*damage)(nil); !errors.As(err, &d) {
			h.fail(err)
		}
		return err
	}
	for _, x := range all {
		if x.held != nil && !x.held.withheld.Load() {
			x.held.saved = true
			if x.held.now == 0 {
				x.held.body = nil
			}
		}
	}
	if t := &h.filed.trouble; t.fault != "" && !t.whole {
		h.cfg.Log.Info("the history is written again", "file", f.path)
		t.fault, t.retry = "", time.Time{}
	}
	return nil
}

// everything is what makes a file of any content one of what is kept. Writing is held.
func (h saver) everything() []op {
	all := rewrite(h.log)
	o := &ops{}
	for _, p := range h.pins {
		o.pin(&p.Pin, p.image)
	}
	o.stage(h.stage.kept)
	return append(all, o.all...)
}

// begin makes a file where there is none that can be used, and writes all into it.
func (h saver) begin() error {
	f, err := anew(h.cfg.Dir)
	h.writing.Lock()
	if err == nil && h.filed.closed {
		err = errors.Join(errors.New("the control plane ends"), f.close())
	}
	if err != nil {
		h.filed.trouble.whole, h.filed.trouble.retry = true, time.Now().Add(retryPause)
		h.fail(err)
		h.writing.Unlock()
		return err
	}
	h.filed.file, h.log.ops, h.filed.trouble.whole = f, &ops{}, true
	h.writing.Unlock()
	err = h.writeTo(f)
	if d := (*damage)(nil); errors.As(err, &d) {
		h.lose(f, d)
	}
	return err
}

// lose gives up a file that is damaged, with what is in it alone as far as it can't be read any
// more, and reports whether another one may be made at once. It runs on the disk's goroutine.
func (h saver) lose(f *file, d *damage) (again bool) {
	h.writing.Lock()
	if h.filed.file != f {
		h.writing.Unlock()
		return false
	}
	keys := wreck{h.log}.fileOnly()
	h.writing.Unlock()
	var found map[string]*view.Body
	if !d.amid {
		var err error
		found, err = f.bodies(keys) // what can't be read is lost, which is said
		if now := (*damage)(nil); errors.As(err, &now) && now.amid {
			d = now
		}
	}
	f.abandon(d)

	h.writing.Lock()
	defer h.writing.Unlock()
	var images []*Image
	for _, p := range h.pins {
		images = append(images, p.image)
	}
	if h.stage.kept != nil {
		images = append(images, h.stage.kept.image)
	}
	t := &h.filed.trouble
	h.filed.file = nil
	dropped := wreck{h.log}.forsake(found, images...)
	now := time.Now()
	if again = now.Sub(t.spoilt) > mostRest; again {
		t.rest = 0
	}
	t.until, t.rest = now.Add(t.rest), min(max(2*t.rest, firstRest), mostRest)
	t.fault, t.whole, t.retry, t.spoilt = d.Error(), true, time.Time{}, now
	t.lost++
	h.cfg.Log.Error("the history's file can't be used any more: what is in memory is kept, and goes to a new one as soon as there can be one",
		"error", d, "revisions lost", dropped)
	return again
}

// read reads resources from the file.
func (h saver) read(ctx context.Context, keys []string) (map[string]*view.Body, error) {
	type result struct {
		found map[string]*view.Body
		err   error
	}
	r, late := disk.On(ctx, h.filed.disk, func() (r result) {
		h.writing.Lock()
		f := h.filed.file
		h.writing.Unlock()
		if f == nil {
			return r
		}
		if r.err = f.check(); !errors.As(r.err, new(*damage)) {
			r.found, r.err = f.bodies(keys) // it can be read, though its directory, say, can't be
		}
		if d := (*damage)(nil); errors.As(r.err, &d) && h.lose(f, d) {
			h.ring()
		}
		return r
	})
	if late != nil {
		return nil, late
	}
	return r.found, r.err
}

// Close writes down what was noted, and lets go of the file, as far as the disk does it in time.
func (h *History) Close() error {
	h.Flush()
	ctx, cancel := waiting()
	defer cancel()
	h.writing.Lock()
	h.filed.closed = true
	fault := h.filed.trouble.fault
	h.writing.Unlock()
	err, late := disk.On(ctx, h.filed.disk, func() error {
		h.writing.Lock()
		f := h.filed.file
		h.filed.file, h.log.ops = nil, nil
		h.writing.Unlock()
		if f == nil {
			return nil
		}
		return whole(f.path, f.close)
	})
	if fault != "" {
		return errors.New(fault)
	}
	return errors.Join(err, late)
}
