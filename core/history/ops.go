package history

import (
	"encoding/binary"
	"encoding/json"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// ops are changes that the file is to take, in order. Its methods may be called of a nil one, which
// takes none.
type ops struct{ all []op }

// op puts a value under a key of a bucket of the file, or takes it away.
type op struct {
	bucket string
	// revision is that of a bucket of its own within the bucket; 0: there is none.
	revision uint64
	key      []byte
	value    func() ([]byte, error) // nil: it goes
	// whole: all of the revision's bucket goes or, without a revision, of the bucket.
	whole bool
	held  *held
}

// Buckets of the file.
const (
	bucketMeta   = "meta"
	bucketBodies = "bodies"
	bucketNow    = "now"
	bucketUndo   = "undo"
	bucketPushes = "pushes"
	bucketPins   = "pins"
	bucketStage  = "stage"
)

// What keys of now and undo begin with.
const (
	keyName  = 'n' // the line's number, a name
	keyPlace = 'p' // a node, 0, a type
	keyMade  = 'm' // a line's number, in undo
)

func (o *ops) add(x op) {
	if o != nil {
		o.all = append(o.all, x)
	}
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func nameKey(line uint64, name string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{keyName}, line), name...)
}

func placeKey(k Key) []byte {
	return append(append(append([]byte{keyPlace}, k.Node...), 0), k.Type...)
}

func asJSON(v any) func() ([]byte, error) { return func() ([]byte, error) { return json.Marshal(v) } }

func (o *ops) push(e *entry) {
	if o != nil {
		o.add(op{bucket: bucketPushes, key: number(e.push.Revision), value: asJSON(e.push)})
	}
}

func (o *ops) now(line uint64, name string, r *ref) {
	if o == nil {
		return
	}
	x := op{bucket: bucketNow, key: nameKey(line, name)}
	if r != nil {
		x.value = text(string(*r))
	}
	o.add(x)
}

func text(s string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(s), nil } }

func (o *ops) place(k Key, p *Place) {
	if o == nil {
		return
	}
	x := op{bucket: bucketNow, key: placeKey(k)}
	if p != nil {
		x.value = asJSON(p)
	}
	o.add(x)
}

// undo notes what a name had; a value of nothing: nothing.
func (o *ops) undo(e *entry, line uint64, name string, r *ref) {
	if o != nil {
		o.add(op{bucket: bucketUndo, revision: e.push.Revision, key: nameKey(line, name), value: asJSON(r)})
	}
}

func (o *ops) undoPlace(e *entry, k Key, p *Place) {
	if o != nil {
		o.add(op{bucket: bucketUndo, revision: e.push.Revision, key: placeKey(k), value: asJSON(p)})
	}
}

func (o *ops) made(e *entry, line uint64) {
	if o != nil {
		o.add(op{bucket: bucketUndo, revision: e.push.Revision, key: append([]byte{keyMade}, number(line)...), value: text("")})
	}
}

func (o *ops) unmade(e *entry, line uint64) {
	if o != nil {
		o.add(op{bucket: bucketUndo, revision: e.push.Revision, key: append([]byte{keyMade}, number(line)...)})
	}
}

func (o *ops) dropped(e *entry) {
	if o != nil {
		o.cleared(e)
		o.add(op{bucket: bucketPushes, key: number(e.push.Revision)})
	}
}

func (o *ops) cleared(e *entry) {
	if o != nil {
		o.add(op{bucket: bucketUndo, revision: e.push.Revision, whole: true})
	}
}

func (o *ops) body(key string, h *held) {
	if o == nil || h.queued {
		return
	}
	h.queued = true
	b := h.body
	o.add(op{bucket: bucketBodies, key: []byte(key), held: h, value: func() ([]byte, error) {
		if h.withheld.Store(!b.Exists() || redact.Has(b.TypeURL(), b.Value())); h.withheld.Load() {
			return []byte(withheld), nil
		}
		return encoded(b), nil
	}})
}

func (o *ops) gone(key string, _ *held) {
	if o != nil {
		o.add(op{bucket: bucketBodies, key: []byte(key)})
	}
}

func (o *ops) pin(p *Pin, im *Image) {
	if o == nil {
		return
	}
	x := op{bucket: bucketPins, key: []byte("p" + p.Proxies)}
	if im != nil {
		kept := storedPin{Pin: *p, Image: im.store()}
		x.value = asJSON(kept)
	}
	o.add(x)
}

func encoded(b *view.Body) []byte {
	first, rest := b.Encoded(true)
	out := append([]byte(nil), first...)
	for _, r := range rest {
		out = append(out, r...)
	}
	return out
}

// withheld stands in the file for a resource that has something secret in it: that is kept in
// memory alone. It is no encoded message.
const withheld = "\x00"

// storedPin is a pin as it is kept.
type storedPin struct {
	Pin
	Image stored `json:"image"`
}

// pushOf reads a push that was kept.
func pushOf(raw []byte) (p report.Push, err error) {
	err = json.Unmarshal(raw, &p)
	return p, err
}
