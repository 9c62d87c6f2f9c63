package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// TestLook: what another core keeps can be looked at while it has the file open; one of another
// format and one that is cut are told of, and stay.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	h := newHistory(t, Config{Dir: dir})
	w := newWorld(h, 3)
	for range 5 {
		w.revise()
		h.Flush()
	}
	if _, _, err := h.Pin(Pin{Revision: w.rev, Since: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
	found, err := Look(dir)
	if err != nil || !strings.Contains(found, "and 1 pins") {
		t.Errorf("%q, %v", found, err)
	}
	path := filepath.Join(dir, FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := t.TempDir()
	if err := os.WriteFile(filepath.Join(cut, FileName), text[:5000], 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := Look(cut); err == nil || !strings.Contains(err.Error(), "can't be read") {
		t.Errorf("of one that is cut: %q, %v", found, err)
	}
	newer := t.TempDir()
	to := filepath.Join(newer, FileName)
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(to, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucketMeta)).Put([]byte("format"), []byte("9")) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := Look(newer); err == nil || !strings.Contains(err.Error(), "format 9, and this version reads 1") {
		t.Errorf("of another format: %q, %v", found, err)
	}
	if found, err := Look(t.TempDir()); found != "" || err != nil {
		t.Errorf("of none: %q, %v", found, err)
	}
}
