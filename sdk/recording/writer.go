package recording

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Writer writes a recording, which ends at a limit. Its methods may be called by several
// goroutines.
type Writer struct {
	began time.Time
	limit int64

	mu       sync.Mutex
	out      io.Writer
	written  int64
	sessions int
	over     chan struct{}
	ended    bool
}

// NewWriter begins a recording of at most limit bytes, and a line that says that there would have
// been more.
func NewWriter(out io.Writer, plugin string, limit int64) *Writer {
	w := &Writer{began: time.Now(), limit: limit, out: out, over: make(chan struct{})}
	w.write(header{Recording: version, Plugin: plugin, Began: w.began.UTC()})
	return w
}

// Over is closed when nothing more is written: it was ended, the limit is reached, or out failed.
func (w *Writer) Over() <-chan struct{} { return w.over }

// End ends the recording: nothing more is written.
func (w *Writer) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
}

// Session returns what takes the messages of one more session. Besides what the messages tell to be
// secret, rows of tables are masked and texts that repeat secrets.
func (w *Writer) Session(tables *SecretTables, secrets ...string) func(fromCore bool, frame []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions++
	number, hide := w.sessions, &mask{tables: tables}
	for _, text := range secrets {
		hide.texts.add(text)
	}
	return func(fromCore bool, frame []byte) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.ended {
			return
		}
		if masked, ok := hide.frame(fromCore, frame); ok {
			w.write(line{Session: number, At: time.Since(w.began), FromCore: fromCore, Frame: masked})
		}
	}
}

// write writes a line; the lock is held.
func (w *Writer) write(v any) {
	text, err := json.Marshal(v)
	text = append(text, '\n')
	if err == nil && w.written+int64(len(text)) > w.limit {
		text, err = json.Marshal(line{At: time.Since(w.began), Note: fmt.Sprintf("the recording has reached its limit of %d bytes", w.limit)})
		text = append(text, '\n')
		w.end()
	}
	if err == nil {
		_, err = w.out.Write(text)
	}
	w.written += int64(len(text))
	if err != nil {
		w.end()
	}
}

func (w *Writer) end() {
	if !w.ended {
		w.ended = true
		close(w.over)
	}
}
