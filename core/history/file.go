package history

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

// FileName is the history's in the directory of the core's state.
const FileName = "history.db"

// format is that of the file; one of another is set aside.
const format = "1"

// lockPatience is how long another core may take to let go of the file.
const lockPatience = 5 * time.Second

// file is a history on disk. Each write is one transaction, so that after a crash it is as it was
// after one of them.
type file struct {
	path string
	db   *bolt.DB
	// under is the file itself as db has it, size how long it was when it was last written.
	under *os.File
	size  int64
}

// damage is that a file must not be used any more.
type damage struct {
	err error
	// amid: bbolt ended amid a transaction. Its locks may be held for good then, so that nothing of
	// it is called any more.
	amid bool
}

func (d *damage) Error() string { return d.err.Error() }
func (d *damage) Unwrap() error { return d.err }

// openFile opens the file of a directory, which is made if it is not there. A file that can't be
// read is set aside, which aside says. The error is that there is no place for one, or that another
// core has it.
func openFile(dir string) (f *file, aside string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("%w; make a directory that this user may write to, and name it by stateDir", err)
	}
	path := filepath.Join(dir, FileName)
	f, err = open(path)
	switch {
	case err == nil:
		return f, "", nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, "", fmt.Errorf("%s: another control plane has it open; give each a stateDir of its own, or end the other one", path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("%w; give this user the right to read and write it, or name another stateDir", err)
	}
	why := err
	if aside, err = setAside(path); err != nil {
		return nil, "", errors.Join(why, err)
	}
	if f, err = open(path); err != nil {
		return nil, "", err
	}
	return f, fmt.Sprintf("%v; it is now %s", why, aside), nil
}

// whole makes an error of what a damaged file does to who reads it: pages that make no sense are a
// panic of bbolt's, and those that are cut off a fault.
func whole(path string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if broken := recover(); broken != nil {
			err = &damage{fmt.Errorf("%s is damaged: %v", path, broken), true}
		}
	}()
	return f()
}

func (f *file) update(do func(*bolt.Tx) error) error {
	if err := f.check(); err != nil {
		return err
	}
	err := whole(f.path, func() error { return f.db.Update(do) })
	f.measure()
	return err
}

func (f *file) view(do func(*bolt.Tx) error) error {
	return whole(f.path, func() error { return f.db.View(do) })
}

func open(path string) (f *file, err error) {
	err = whole(path, func() error {
		f, err = openWhole(path)
		return err
	})
	return f, err
}

func openWhole(path string) (*file, error) {
	f := &file{path: path}
	opening := func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
		f.under, err = os.OpenFile(name, flag, mode)
		return f.under, err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockPatience, FreelistType: bolt.FreelistMapType, OpenFile: opening})
	if err != nil {
		return nil, err
	}
	f.db = db
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range []string{bucketMeta, bucketBodies, bucketNow, bucketUndo, bucketPushes, bucketPins, bucketStage} {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte(bucketMeta))
		switch was := string(meta.Get([]byte("format"))); was {
		case format:
			return scrub(tx)
		case "":
			return errors.Join(meta.Put([]byte("format"), []byte(format)), scrub(tx))
		default:
			return fmt.Errorf("%s: it is of format %s, not %s", path, was, format)
		}
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	f.measure()
	return f, nil
}

func (f *file) close() error { return f.db.Close() }

// abandon lets go of a file that must not be used any more. If bbolt ended amid a transaction, what
// it has mapped stays so: it can't be told to close without its locks.
func (f *file) abandon(d *damage) {
	if !d.amid && whole(f.path, f.close) == nil {
		return
	}
	_ = unix.Flock(int(f.under.Fd()), unix.LOCK_UN) // which what is mapped would keep
	_ = f.under.Close()
}

// measure notes how long the file is.
func (f *file) measure() {
	if is, err := f.under.Stat(); err == nil {
		f.size = is.Size()
	}
}

// check looks whether the file is what it was when it was last written. The error is a *damage if
// it is not.
func (f *file) check() error {
	is, err := f.under.Stat()
	if err != nil {
		return err
	}
	at, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &damage{err: fmt.Errorf("%s was removed", f.path)}
	case err != nil:
		return err
	case !os.SameFile(is, at):
		return &damage{err: fmt.Errorf("%s is another file than the one that was opened", f.path)}
	case is.Size() != f.size:
		return &damage{err: fmt.Errorf("%s has %d bytes, and had %d when it was last written: another program has changed it", f.path, is.Size(), f.size)}
	}
	return nil
}

// write makes changes, all of them or none.
func (f *file) write(all []op, last uint64) error {
	return f.update(func(tx *bolt.Tx) error {
		for _, x := range all {
			if err := x.do(tx); err != nil {
				return fmt.Errorf("%s: %w", f.path, err)
			}
		}
		return tx.Bucket([]byte(bucketMeta)).Put([]byte("number"), number(last))
	})
}

func (x op) do(tx *bolt.Tx) error {
	if x.whole && x.revision == 0 {
		if err := tx.DeleteBucket([]byte(x.bucket)); err != nil {
			return err
		}
		_, err := tx.CreateBucket([]byte(x.bucket))
		return err
	}
	b := tx.Bucket([]byte(x.bucket))
	if x.whole {
		err := b.DeleteBucket(number(x.revision))
		if errors.Is(err, bolterrors.ErrBucketNotFound) {
			return nil
		}
		return err
	}
	if x.revision > 0 {
		var err error
		if b, err = b.CreateBucketIfNotExists(number(x.revision)); err != nil {
			return err
		}
	}
	if len(x.key) > bolt.MaxKeySize {
		return nil // nothing that a proxy can ask for has such a name
	}
	if x.value == nil {
		return b.Delete(x.key)
	}
	v, err := x.value()
	if err != nil {
		return err
	}
	return b.Put(x.key, v)
}

// bodies reads resources by their keys, as far as they are there: of those that have something
// secret in them the file has a mark. The error is a *damage where one makes no sense; what could
// be read is returned all the same.
func (f *file) bodies(keys []string) (map[string]*view.Body, error) {
	found := make(map[string]*view.Body, len(keys))
	var bad error
	err := f.view(func(tx *bolt.Tx) error {
		in := tx.Bucket([]byte(bucketBodies))
		for _, key := range keys {
			raw := in.Get([]byte(key))
			if raw == nil {
				continue
			}
			if string(raw) == withheld && len(key) >= versionSize {
				found[key] = view.Mark(key[versionSize:], key[:versionSize])
				continue
			}
			b, err := decoded(raw)
			if err == nil && bodyKey(b.Name(), ref(b.Version())) != key {
				err = fmt.Errorf("resource %q has the place of another", b.Name())
			}
			if err != nil {
				bad = &damage{err: fmt.Errorf("%s: %w", f.path, err)}
				continue
			}
			found[key] = b
		}
		return nil
	})
	return found, cmp.Or(err, bad)
}

// find reads a resource.
func (f *file) find(key string) (*view.Body, error) {
	found, err := f.bodies([]string{key})
	if err != nil {
		return nil, err
	}
	if b := found[key]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("%s: resource %q is not there", f.path, key)
}

// scrub takes out of a file what an earlier version wrote into it of what is secret.
func scrub(tx *bolt.Tx) error {
	meta, bodies := tx.Bucket([]byte(bucketMeta)), tx.Bucket([]byte(bucketBodies))
	if meta.Get([]byte("scrubbed")) != nil {
		return nil
	}
	var keys [][]byte
	err := bodies.ForEach(func(k, v []byte) error {
		if b, err := decoded(v); err == nil && redact.Has(b.TypeURL(), b.Value()) {
			keys = append(keys, slices.Clone(k))
		}
		return nil
	})
	for _, k := range keys {
		err = errors.Join(err, bodies.Put(k, []byte(withheld)))
	}
	return errors.Join(err, meta.Put([]byte("scrubbed"), []byte(format)))
}

// decoded reads what encoded wrote.
func decoded(raw []byte) (*view.Body, error) {
	var d discovery.DeltaDiscoveryResponse
	if err := proto.Unmarshal(raw, &d); err != nil || len(d.Resources) != 1 {
		return nil, fmt.Errorf("it is no resource: %w", err)
	}
	r := d.Resources[0]
	b := view.NewBody(r.GetResource().GetTypeUrl(), r.Name, r.GetResource().GetValue(), uint32(r.GetTtl().GetSeconds()))
	if b.Version() != r.Version {
		return nil, fmt.Errorf("resource %q is of version %s, not %s", r.Name, b.Version(), r.Version)
	}
	return b, nil
}

// load reads all but resources, and the pins and the stage with theirs. last is the highest
// revision's number that was noted.
func (f *file) load(l *Log) (pins []*kept, stage *keptStage, last uint64, err error) {
	var raw []storedPin
	var staged *storedStage
	err = f.view(func(tx *bolt.Tx) error {
		if n := tx.Bucket([]byte(bucketMeta)).Get([]byte("number")); len(n) == 8 {
			last = binary.BigEndian.Uint64(n)
		}
		sizes := func(key, v []byte) error {
			h := &held{size: int64(len(v)), queued: true, saved: true}
			h.withheld.Store(string(v) == withheld)
			l.bodies[string(key)] = h
			return nil
		}
		if err := tx.Bucket([]byte(bucketBodies)).ForEach(sizes); err != nil {
			return err
		}
		if err := f.entries(tx, l); err != nil {
			return err
		}
		if err := tx.Bucket([]byte(bucketNow)).ForEach(l.loadNow); err != nil {
			return err
		}
		if staged, err = loadStage(tx); err != nil {
			return err
		}
		return tx.Bucket([]byte(bucketPins)).ForEach(func(_, v []byte) error {
			var p storedPin
			err := json.Unmarshal(v, &p)
			raw = append(raw, p)
			return err
		})
	})
	if err != nil {
		return nil, nil, 0, err
	}
	for _, p := range raw {
		im, err := restore(p.Image, f.find)
		if err != nil {
			return nil, nil, 0, err
		}
		l.keep(im, 1)
		pins = append(pins, &kept{p.Pin, im})
	}
	if staged != nil {
		im, err := restore(staged.Image, f.find)
		if err != nil {
			return nil, nil, 0, err
		}
		l.keep(im, 1)
		stage = &keptStage{staged.Stage, im}
	}
	return pins, stage, last, l.tidy()
}

// entries reads the revisions, and what undoes them.
func (f *file) entries(tx *bolt.Tx, l *Log) error {
	return tx.Bucket([]byte(bucketPushes)).ForEach(func(k, v []byte) error {
		p, err := pushOf(v)
		if err != nil {
			return err
		}
		e := newEntry(p)
		e.bytes = pushCost
		l.entries = append(l.entries, e)
		if b := tx.Bucket([]byte(bucketUndo)).Bucket(k); b != nil {
			err = b.ForEach(func(k, v []byte) error { return l.loadUndo(e, k, v) })
		}
		l.bytes += e.bytes
		return err
	})
}

var errKey = errors.New("it has a key of another kind")

func (l *Log) loadUndo(e *entry, k, v []byte) error {
	switch {
	case len(k) == 9 && k[0] == keyMade:
		id := binary.BigEndian.Uint64(k[1:])
		e.made[id], l.last = true, max(l.last, id)
	case len(k) >= 9 && k[0] == keyName:
		id, name := binary.BigEndian.Uint64(k[1:]), string(k[9:])
		var r *ref
		if err := json.Unmarshal(v, &r); err != nil {
			return err
		}
		if e.names[id] == nil {
			e.names[id] = map[string]*ref{}
		}
		e.names[id][name], l.last = r, max(l.last, id)
		if err := l.count(name, r, 0, 1); err != nil {
			return err
		}
		e.bytes += nameCost + int64(len(name)) + l.size(name, r)
	case len(k) > 1 && k[0] == keyPlace:
		var p *Place
		if err := json.Unmarshal(v, &p); err != nil {
			return err
		}
		key := placeOf(k)
		e.places[key] = p
		e.bytes += placeCost + int64(len(key.Node))
	default:
		return errKey
	}
	return nil
}

func (l *Log) loadNow(k, v []byte) error {
	switch {
	case len(k) >= 9 && k[0] == keyName:
		id, name, r := binary.BigEndian.Uint64(k[1:]), string(k[9:]), ref(v)
		if l.lines[id] == nil {
			l.lines[id] = &line{refs: map[string]ref{}}
		}
		l.lines[id].refs[name], l.last = r, max(l.last, id)
		return l.count(name, &r, 1, 0)
	case len(k) > 1 && k[0] == keyPlace:
		p := &Place{}
		if err := json.Unmarshal(v, p); err != nil {
			return err
		}
		l.places[placeOf(k)] = p
		return nil
	}
	return errKey
}

func placeOf(k []byte) Key {
	for i := len(k) - 1; i > 0; i-- {
		if k[i] == 0 {
			return Key{string(k[1:i]), string(k[i+1:])}
		}
	}
	return Key{Node: string(k[1:])}
}

func (l *Log) count(name string, r *ref, now, old int) error {
	if r == nil || *r == "" {
		return nil
	}
	h := l.bodies[bodyKey(name, *r)]
	if h == nil {
		return fmt.Errorf("resource %q of version %s is named and not there", name, *r)
	}
	h.now, h.old = h.now+now, h.old+old
	return nil
}

// tidy makes what was read whole: lines have users, and resources that nothing names go.
func (l *Log) tidy() error {
	for k, p := range l.places {
		for _, id := range p.Lines {
			l.last = max(l.last, id)
			if l.lines[id] == nil { // it is empty
				l.lines[id] = &line{refs: map[string]ref{}}
			}
			if l.lines[id].users++; k.Type == "" {
				return errKey
			}
		}
	}
	for id, ln := range l.lines {
		if ln.users == 0 {
			return fmt.Errorf("nobody has line %d", id)
		}
	}
	for key, h := range l.bodies {
		l.rest(key, h)
	}
	return nil
}

// rewrite returns what makes a file of any content one of a log. Resources that are in it stay.
func rewrite(l *Log) []op {
	had := l.ops
	defer func() { l.ops = had }()
	o := &ops{}
	l.ops = o
	for _, bucket := range []string{bucketNow, bucketUndo, bucketPushes, bucketPins, bucketStage} {
		o.add(op{bucket: bucket, whole: true})
	}
	for _, e := range l.entries {
		o.push(e)
		for id := range e.made {
			o.made(e, id)
		}
		for id, names := range e.names {
			for name, r := range names {
				o.undo(e, id, name, r)
			}
		}
		for k, p := range e.places {
			o.undoPlace(e, k, p)
		}
	}
	for k, p := range l.places {
		o.place(k, p)
	}
	for id := range l.lines {
		for name, r := range l.refs(id) {
			o.now(id, name, &r)
		}
	}
	for key, h := range l.bodies {
		if h.saved || h.body == nil {
			continue
		}
		h.queued = false
		o.body(key, h)
	}
	return o.all
}
