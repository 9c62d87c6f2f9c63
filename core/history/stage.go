package history

import (
	"context"
	"encoding/json"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// Stage is a stage of pushes that is under way, as a control plane that starts again takes it up
// (core/control/internal/rollout).
type Stage struct {
	// Base is the revision that was served before it.
	Base uint64 `json:"base"`
	// State is how far it is, in the words of who keeps it.
	State json.RawMessage `json:"state"`
}

// keptStage is a stage with what was served before it.
type keptStage struct {
	Stage
	image *Image
}

// storedStage is a stage as it is kept on disk.
type storedStage struct {
	Stage
	Image stored `json:"image"`
}

// KeepStage has a stage outlive a restart; nil: none is under way any more. It is written down off
// the path of pushes. Without a directory nothing is.
func (h *History) KeepStage(s *Stage) {
	if h == nil || h.cfg.Dir == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stage.next, h.stage.due = s, true
	h.ring()
}

// Stage returns the stage that was under way when it was written down last, and what was served
// before it; nil: none was.
func (h *History) Stage() (*Stage, *Image) {
	if h == nil {
		return nil, nil
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	if h.stage.kept == nil {
		return nil, nil
	}
	return &h.stage.kept.Stage, h.stage.kept.image
}

// stages is the stage that is under way.
type stages struct {
	next *Stage // for History.mu, as due
	due  bool
	kept *keptStage // for History.writing
	// staging: one stage is written down at a time.
	staging sync.Mutex
}

// nextStage returns what is to be written of a stage, if anything is.
func (h *History) nextStage() (next *Stage, due bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next, due = h.stage.next, h.stage.due
	h.stage.next, h.stage.due = nil, false
	return next, due
}

// writeStage takes a stage in, once the revision before it is written down.
func (h *History) writeStage(ctx context.Context) {
	h.stage.staging.Lock() // which nobody waits for but Run
	defer h.stage.staging.Unlock()
	next, due := h.nextStage()
	was := h.stage.kept
	if !due || next == nil && was == nil {
		return
	}
	var k *keptStage
	if next != nil {
		k = &keptStage{Stage: *next}
		if was != nil && was.Base == next.Base {
			k.image = was.image
		} else if im, err := saves(h).at(ctx, next.Base); err == nil {
			k.image = im
		} else {
			h.cfg.Log.Warn("a stage of pushes will not outlive a restart", "revision", next.Base, "error", err)
			k = nil
		}
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	if h.stage.kept = k; k != nil {
		h.log.keep(k.image, 1)
	}
	if was != nil {
		h.log.keep(was.image, -1)
	}
	h.log.ops.stage(k)
	h.filed.unsaved = true
}

func (o *ops) stage(k *keptStage) {
	if o == nil {
		return
	}
	x := op{bucket: bucketStage, key: []byte(bucketStage)}
	if k != nil {
		x.value = asJSON(storedStage{k.Stage, k.image.store()})
	}
	o.add(x)
}

// loadStage reads the stage of a file; nil: none is there.
func loadStage(tx *bolt.Tx) (*storedStage, error) {
	raw := tx.Bucket([]byte(bucketStage)).Get([]byte(bucketStage))
	if raw == nil {
		return nil, nil
	}
	s := &storedStage{}
	return s, json.Unmarshal(raw, s)
}
