package history

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

const typeStruct = "type.googleapis.com/google.protobuf.Struct"

// secretive is a resource with a password.
func secretive(t *testing.T, name, password string) *view.Body {
	t.Helper()
	s, err := structpb.NewStruct(map[string]any{"password": password})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return view.NewBody(typeStruct, name, raw, 0)
}

// TestWithheld: a resource with a secret is in no file. While the control plane lives a pin serves
// it; after a restart it is as it is live, and all else is as it was. That its version is the same
// is known still. A file of a program that wrote secrets has none any more.
func TestWithheld(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	cfg := Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}
	h := newHistory(t, cfg)
	old, next := secretive(t, "with", "hunter2-old"), secretive(t, "with", "hunter2-new")
	k := Key{"p", typeStruct}
	s := view.NewSet([]*view.Body{old, body("without", "seen")})
	show := func(h *History, revision uint64, s *view.Set) {
		h.Note(revision, Shown{Key: k, Connection: 1, Snapshot: view.NewSnapshot(s, nil, true)})
		h.Shown(report.Push{Revision: revision, Kind: "full"})
		h.Flush()
	}
	show(h, 1, s)
	show(h, 2, s.With([]*view.Body{next}, nil))
	im, note, err := h.Pin(Pin{Revision: 1, Since: time.Now()})
	if err != nil || !strings.Contains(note, "with, of 1 resources") {
		t.Fatalf("%v %q", err, note)
	}
	if snap, _ := im.Of(k, "", nil); string(snap.Get("with").Value()) != string(old.Value()) || snap.Lacks() != nil {
		t.Errorf("the pin serves %v", words(snap))
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	disk, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || bytes.Contains(disk, []byte("hunter2")) || !bytes.Contains(disk, []byte("seen")) {
		t.Errorf("%v: the file has %q", err, disk[max(0, bytes.Index(disk, []byte("hunter2"))):][:40])
	}

	for range 2 { // a second restart finds the same
		h = newHistory(t, cfg)
		_, images := h.Pins()
		if len(images) != 1 || !strings.Contains(log.String(), "resources of a pin have something secret in them") {
			t.Fatalf("%d pins: %s", len(images), log.String())
		}
		snap, by := images[0].Of(k, "", nil)
		if by != Own || !slices.Equal(snap.Lacks(), []string{"with"}) || snap.Get("with") != nil || string(snap.Get("without").Value()) != "seen" {
			t.Errorf("the pin serves %s %v, lacks %q", by, words(snap), snap.Lacks())
		}
		live := view.NewSnapshot(view.NewSet([]*view.Body{next, body("new", "live")}), nil, true)
		if filled := snap.Filled(live); filled.Get("with") != next || filled.Get("new") != nil || !filled.Complete() || filled.Lacks() != nil {
			t.Errorf("with what is live it is %v", words(filled))
		}
		d, err := h.Diff(1, 2, "")
		if err != nil || len(d.Resources) != 1 || d.Resources[0].Before != old.Version() || d.Resources[0].After != next.Version() || !d.Resources[0].Withheld {
			t.Errorf("%v: %+v", err, d)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScrub: what an earlier version wrote of secrets is taken out of its file.
func TestScrub(t *testing.T) {
	f, _, err := openFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, plain := secretive(t, "with", "hunter2"), body("without", "seen")
	key := func(b *view.Body) string { return bodyKey(b.Name(), ref(b.Version())) }
	err = f.update(func(tx *bolt.Tx) error {
		bodies := tx.Bucket([]byte(bucketBodies))
		return errors.Join(bodies.Put([]byte(key(b)), encoded(b)), bodies.Put([]byte(key(plain)), encoded(plain)),
			tx.Bucket([]byte(bucketMeta)).Delete([]byte("scrubbed")))
	})
	if err != nil || f.close() != nil {
		t.Fatal(err)
	}
	again, err := open(f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.close() }()
	if got, err := again.find(key(b)); err != nil || got.Exists() || got.Name() != b.Name() || got.Version() != b.Version() {
		t.Errorf("%v %v", got, err)
	}
	if got, err := again.find(key(plain)); err != nil || string(got.Value()) != "seen" {
		t.Error(err)
	}
}
