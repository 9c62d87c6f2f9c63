package history

import (
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// closed returns a database that can't be written.
func closed(t *testing.T) *bolt.DB {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "closed.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return db
}
