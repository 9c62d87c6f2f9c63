package mesh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

// layer is one text of a setting: a file, or a key of a ConfigMap.
type layer struct {
	// place is a path, or k8s://configmaps/NAMESPACE/NAME#KEY.
	place string
	// path is that of a file; empty: it is none.
	path string
	// read returns what there is; nil: nothing.
	read func() ([]byte, error)

	// text is what counts, unless it is faulty: then good does, the last version that was not. Nil:
	// there is none.
	text, good []byte
	faults     []kinds.Fault
	// gone is since when a text that had a meaning is empty or missing: its writer may just have
	// begun. missed: that has lasted for too long.
	gone   time.Time
	missed bool
	// filled says that the text had a meaning when it was read last.
	filled bool
}

// goneFor is how many settle times a text must be empty or missing for that to be a fault.
const goneFor = 50

// maxFile is the size beyond which a file is refused.
const maxFile = 1 << 20

// look reads the text. What it said stays when it is suddenly empty or missing, which is a fault if
// that lasts for longer than patience: the disk was full, or somebody slipped. Who means the
// defaults can say so.
func (l *layer) look(now time.Time, patience time.Duration) {
	text, err := l.read()
	blank := len(bytes.Trim(text, " \t\r\n\x00")) == 0 // some file systems leave zeros where a write was cut off
	switch {
	case err != nil:
		l.faults = []kinds.Fault{l.fault("cannot be read: %v", err)}
	case blank && l.filled:
		l.miss(now, patience, text != nil)
	default:
		l.text, l.faults = text, nil
		l.gone, l.missed, l.filled = time.Time{}, false, !blank
	}
}

// miss notes that a text that had a meaning is empty or missing.
func (l *layer) miss(now time.Time, patience time.Duration, there bool) {
	if l.gone.IsZero() {
		l.gone = now
	}
	if l.missed = now.Sub(l.gone) >= patience; l.missed {
		is := "is gone"
		if there {
			is = "is empty, and was not"
		}
		l.faults = []kinds.Fault{l.fault("it %s; write it again, or {} in it if the defaults are meant", is)}
	}
}

// counts reports whether a version with a meaning is applied.
func (l *layer) counts() bool { return len(bytes.TrimSpace(l.good)) > 0 }

func (l *layer) fault(format string, args ...any) kinds.Fault {
	return kinds.Fault{File: l.place, Line: 1, Column: 1, Code: kinds.CodeFile, Message: fmt.Sprintf(format, args...)}
}

// fileLayer is a file; it need not be there.
func fileLayer(path string) *layer {
	return &layer{place: path, path: path, read: func() ([]byte, error) { return content(path) }}
}

// content returns what a file holds; nil where there is no file.
func content(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() && !info.IsDir():
		return nil, nil
	case err == nil && info.Size() > maxFile:
		err = fmt.Errorf("it has %d bytes, more than %d", info.Size(), maxFile)
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// keyLayer is a key of a ConfigMap.
func keyLayer(m *configMaps, name, key string) *layer {
	return &layer{
		place: "k8s://configmaps/" + m.namespace + "/" + name + "#" + key,
		read:  func() ([]byte, error) { return m.text(name, key), nil },
	}
}
