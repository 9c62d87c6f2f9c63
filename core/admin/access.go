package admin

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/coxswain-mesh/coxswain/core/budget"
)

// What is logged of who asks for pages: so many lines a second, so many at once, and so many bytes
// of a path.
const (
	accessPerSecond = 10
	accessAtOnce    = 100
	longestPath     = 200
)

// access is the log of who asks for debug pages: from this machine at debug, from elsewhere at
// info.
type access struct {
	log    *slog.Logger
	limit  *rate.Limiter
	unsaid atomic.Int64
}

func newAccess(log *slog.Logger) *access {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &access{log: log, limit: rate.NewLimiter(accessPerSecond, accessAtOnce)}
}

// noted logs what h answers once it has. Queries are left out: they may hold anything.
func (a *access) noted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, answer := time.Now(), &answered{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(answer, r)
		a.note(r, answer.by, "page asked for", "status", answer.status, "took", time.Since(began))
	})
}

// begun logs that h, which goes on for as long as it is read, begins to answer.
func (a *access) begun(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var by []string
		if answer, ok := w.(*answered); ok {
			by = answer.by
		}
		a.note(r, by, "page is followed")
		h(w, r)
	}
}

// note logs a line about a request of somebody, whose namespaces are by.
func (a *access) note(r *http.Request, by []string, text string, more ...any) {
	level := slog.LevelInfo
	if local(r) {
		level = slog.LevelDebug
	}
	if !a.log.Enabled(r.Context(), level) {
		return
	}
	if !a.limit.Allow() {
		a.unsaid.Add(1)
		return
	}
	args := append([]any{"method", budget.Line(r.Method, longestPath), "path", budget.Line(r.URL.Path, longestPath), "remote", r.RemoteAddr}, more...)
	if len(by) > 0 {
		args = append(args, "namespaces", by)
	}
	if n := a.unsaid.Swap(0); n > 0 {
		args = append(args, "unsaid", n)
	}
	a.log.Log(r.Context(), level, text, args...)
}

// answered is an answer whose status is noted, and the namespaces of who asked.
type answered struct {
	http.ResponseWriter
	status int
	by     []string
}

// WriteHeader implements http.ResponseWriter.
func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer that it wraps, whose deadlines and flushes callers ask for.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }
