package host

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"hash"
	"io"
	"os"
)

// loaded is a program or module that is ready to be run.
type loaded struct {
	// path for people and, where file is nil, to be opened.
	path string
	// file holds the very bytes that are meant, open for reading.
	file *os.File
	// release is called when a process has both.
	release func()
}

func compare(path string, sum hash.Hash, want manifest.Digest) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != string(want) {
		return fmt.Errorf("%s is not what plugins.yaml pins: its sha256 is %s, the file says %s", path, got, want)
	}
	return nil
}

// copyPinned copies a file into another and checks the hash of what it copied.
func copyPinned(to *os.File, path string, want manifest.Digest) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), from); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return compare(path, sum, want)
}
