package api

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/recording"
)

// mostRecorded is how large a recording may be at most, in bytes: the core holds what its reader
// has not taken yet.
const mostRecorded = 1 << 30

// record streams a recording of a plugin until the client goes or the recording is full. The plugin
// is started anew for it.
func (s *Server) record(w http.ResponseWriter, r *http.Request) {
	limit, err := strconv.ParseInt(r.FormValue("limit"), 10, 64)
	if err != nil || limit <= 0 || limit > mostRecorded {
		s.answer(w, http.StatusBadRequest, Outcome{Error: fmt.Sprintf("limit is a number of bytes up to %d, not %q", mostRecorded, r.FormValue("limit"))})
		return
	}
	atLeisure(w)
	queue := &spool{filled: make(chan struct{}, 1)}
	writer := recording.NewWriter(queue, r.PathValue("name"), limit)
	stop, err := s.Swapper.Record(r.Context(), r.PathValue("name"), writer)
	if err != nil {
		s.answer(w, http.StatusConflict, Outcome{Error: err.Error()})
		return
	}
	defer stop()
	w.Header().Set("Content-Type", "application/jsonl")
	for over := false; !over; {
		select {
		case <-queue.filled:
		case <-writer.Over():
			over = true
		case <-r.Context().Done():
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
		if _, err := w.Write(queue.drain()); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
	}
}

// spool holds what was recorded and not sent yet, so that a plugin never waits for a recording's
// reader.
type spool struct {
	filled chan struct{}
	mu     sync.Mutex
	buf    bytes.Buffer
}

func (s *spool) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.filled <- struct{}{}:
	default:
	}
	return s.buf.Write(b)
}

func (s *spool) drain() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := bytes.Clone(s.buf.Bytes())
	s.buf.Reset()
	return out
}
