// Package recording writes and reads what a plugin and a core said to each other. A recording is a
// line of JSON that says what it is, and one for each message, in order. What may be secret is
// masked while it is written.
package recording

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// version of the file's format.
const version = 1

// Recording is what was read from a file.
type Recording struct {
	// Plugin is its name in plugins.yaml.
	Plugin string
	Began  time.Time
	// Sessions, in the order in which they began: a plugin that was started again has several.
	Sessions []Session
	// Note says why the recording ended before it was stopped.
	Note string
}

// Session is what was said from Hello on.
type Session []Message

// Message is one that was said.
type Message struct {
	// At is when it was said, since the recording's beginning.
	At time.Duration
	// FromCore is its direction.
	FromCore bool
	// Frame is the message, encoded as the contract has it.
	Frame []byte
}

// header is the first line.
type header struct {
	Recording int       `json:"recording"`
	Plugin    string    `json:"plugin"`
	Began     time.Time `json:"began"`
}

// line is any other line: a message, or a note.
type line struct {
	Session  int           `json:"session,omitempty"`
	At       time.Duration `json:"at"`
	FromCore bool          `json:"fromCore,omitempty"`
	Frame    []byte        `json:"frame,omitempty"`
	Note     string        `json:"note,omitempty"`
}

// Read reads a recording. A last line that was cut off is left out.
func Read(in io.Reader) (*Recording, error) {
	d := json.NewDecoder(bufio.NewReader(in))
	var h header
	if err := d.Decode(&h); err != nil || h.Recording != version {
		return nil, fmt.Errorf("it is no recording of version %d", version)
	}
	r := &Recording{Plugin: h.Plugin, Began: h.Began}
	for n := 1; ; n++ {
		var l line
		switch err := d.Decode(&l); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return r, nil
		case err != nil:
			return nil, fmt.Errorf("message %d: %w", n, err)
		}
		if err := r.add(l); err != nil {
			return nil, fmt.Errorf("message %d: %w", n, err)
		}
	}
}

func (r *Recording) add(l line) error {
	if l.Note != "" {
		r.Note = l.Note
		return nil
	}
	switch l.Session {
	case len(r.Sessions) + 1:
		r.Sessions = append(r.Sessions, nil)
	default:
		if l.Session < 1 || l.Session > len(r.Sessions) {
			return fmt.Errorf("session %d has not begun", l.Session)
		}
	}
	at := &r.Sessions[l.Session-1]
	*at = append(*at, Message{At: l.At, FromCore: l.FromCore, Frame: l.Frame})
	return nil
}
