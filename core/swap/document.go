package swap

import (
	"bytes"
	"log/slog"
	"os"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// document is plugins.yaml as it was read last, or written. Only who has the turn changes what it
// says.
type document struct {
	// path is where it is; empty: there is no file.
	path  string
	parse func(text []byte) (*manifest.Set, error)
	log   *slog.Logger

	mu    sync.Mutex
	set   *manifest.Set
	text  []byte
	fault string
}

// now returns what the file says, and its text.
func (d *document) now() (*manifest.Set, []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set, d.text
}

// becomes makes a text, and the set that it means, what the file says.
func (d *document) becomes(set *manifest.Set, text []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set, d.text = set, text
}

// read returns the file as it is now, or as it was applied last where it can't be read.
func (d *document) read() (*manifest.Set, []byte) {
	last, known := d.now()
	if d.path == "" {
		return last, known
	}
	text, err := os.ReadFile(d.path)
	if err == nil && bytes.Equal(text, known) {
		d.blame(nil)
		return last, known
	}
	var set *manifest.Set
	if err == nil {
		set, err = d.parse(text)
	}
	d.blame(err)
	if err != nil {
		return last, known
	}
	return set, text
}

// blame keeps, and says once, what is wrong with the file; and once that nothing is any more.
func (d *document) blame(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	d.mu.Lock()
	new := d.fault != text
	d.fault = text
	d.mu.Unlock()
	switch {
	case new && err != nil:
		d.log.Error("plugins.yaml can't be followed; nothing was changed", "error", text)
	case new:
		d.log.Info("plugins.yaml is followed again")
	}
}

// faults returns what is wrong with the file as it is now; empty: nothing.
func (d *document) faults() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault
}

// textOf is the file's text, if an entry stands in it as it is.
func (d *document) textOf(e *manifest.Entry) []byte {
	set, text := d.now()
	if in, _ := set.Get(e.Name); in != nil && manifest.Same(in, e) {
		return text
	}
	return nil
}
