package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// looks is how often a file may be copied while a core writes into it.
const looks = 5

// Look says what this version would make of the history in a directory of another core's state,
// which may run: it reads a copy. The error is why the file would be set aside; a directory without
// one is nothing to say of.
func Look(dir string) (found string, err error) {
	from := filepath.Join(dir, FileName)
	to, err := os.MkdirTemp("", "coxswain-history")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(to) //nolint:errcheck // it holds a copy
	for range looks {
		if err = readCopy(from, filepath.Join(to, FileName), &found); err == nil || errors.Is(err, fs.ErrPermission) {
			return found, err
		}
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
	}
	return "", err
}

// readCopy copies a file, and reads the copy whole.
func readCopy(from, to string, found *string) error {
	if err := duplicate(from, to); err != nil {
		return err
	}
	was, err := formatOf(to)
	if err != nil {
		return fmt.Errorf("%s can't be read: %w", from, err)
	}
	if was != "" && was != format {
		return fmt.Errorf("%s is of format %s, and this version reads %s", from, was, format)
	}
	f, err := open(to)
	if err != nil {
		return fmt.Errorf("%s can't be read: %w", from, err)
	}
	defer f.close() //nolint:errcheck // it is a copy
	log := newLog(bounds{})
	pins, _, last, err := f.load(log)
	if err != nil {
		return fmt.Errorf("%s can't be read: %w", from, err)
	}
	*found = fmt.Sprintf("%s has %d revisions, the last one %d, and %d pins", from, len(log.entries), last, len(pins))
	return nil
}

// formatOf is what a file says of itself; "": it is new.
func formatOf(path string) (was string, err error) {
	err = whole(path, func() error {
		db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockPatience})
		if err != nil {
			return err
		}
		defer db.Close() //nolint:errcheck // it was only read
		return db.View(func(tx *bolt.Tx) error {
			if meta := tx.Bucket([]byte(bucketMeta)); meta != nil {
				was = string(meta.Get([]byte("format")))
			}
			return nil
		})
	})
	return was, err
}

func duplicate(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
