// Package api is how commands ask a running core for changes of its plugins: HTTP and JSON over a
// Unix socket.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/admin/login"
	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/host/family"
	"github.com/coxswain-mesh/coxswain/core/levels"
	"github.com/coxswain-mesh/coxswain/core/mask"
	"github.com/coxswain-mesh/coxswain/core/swap"
	"github.com/coxswain-mesh/coxswain/core/ticks"
	"github.com/coxswain-mesh/coxswain/sdk/peer"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// Socket is the name of the socket on which changes are asked for, in the core's private directory.
const Socket = "admin.sock"

// Server answers on the socket.
type Server struct {
	Swapper *swap.Swapper
	Holds   Holds
	Pins    Pins
	Rollout Rollout
	// Plugins returns what runs, as the debug page shows it.
	Plugins func() []admin.Plugin
	// Rows returns what became of a plugin's rows by table, and of what it made no rows; optional.
	Rows func(plugin string) ([]admin.TableRows, []admin.DroppedRows)
	// Core says which core it is.
	Core func() Core
	// Outdated reports whether the program's file is what runs still; optional.
	Outdated func() string
	// Secrets are left out of every answer; may be nil.
	Secrets *mask.Secrets
	// Logins has who may change something from the page; nil: nobody may.
	Logins *login.Logins
	// Audit keeps who changed what; may be nil.
	Audit *audit.Log
	// Levels are those of the log.
	Levels *levels.Levels
	Log    *slog.Logger
	// Opened is called when the socket is there, for the first time; optional.
	Opened func()
}

// Order is the body of a request for a change.
type Order struct {
	swap.Request
	DryRun    bool `json:"dryRun,omitempty"`
	Force     bool `json:"force,omitempty"`
	Ephemeral bool `json:"ephemeral,omitempty"`
}

// Outcome is the answer to it. Error says why it was not done.
type Outcome struct {
	Change *swap.Change `json:"change,omitempty"`
	Error  string       `json:"error,omitempty"`
	// Guarded: the error is that of a guard, and force goes on all the same.
	Guarded bool `json:"guarded,omitempty"`
}

// Detail of a plugin.
type Detail struct {
	admin.Plugin
	Changes []*swap.Change `json:"changes,omitempty"`
	// Tables say what became of its rows, Dropped of what it made none.
	Tables  []admin.TableRows   `json:"tables,omitempty"`
	Dropped []admin.DroppedRows `json:"dropped,omitempty"`
	// FileFault is what is wrong with plugins.yaml, which is not followed because of that.
	FileFault string `json:"fileFault,omitempty"`
	// Outdated says that the program's file is not what runs any more.
	Outdated string `json:"outdated,omitempty"`
}

// Serve takes requests for changes on a Unix socket, which only this user may open, until ctx ends.
// When the socket is removed it is made anew.
func (s *Server) Serve(ctx context.Context, path string) error {
	l, err := listenPrivately(ctx, path, s.Log)
	if err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	s.Log.Info("listening", "port", "admin", "address", path)
	if s.Opened != nil {
		s.Opened()
	}
	server := &http.Server{Handler: s.Handler(), BaseContext: func(net.Listener) context.Context { return ctx }}
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return audit.With(ctx, audit.Peer(c)) }
	admin.Limit(server)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	for l != nil {
		removed := whenRemoved(ctx, l, path)
		err := server.Serve(l)
		switch {
		case errors.Is(err, http.ErrServerClosed):
			return nil
		case !removed():
			return fmt.Errorf("admin socket: %w", err)
		}
		s.Log.Warn("the admin socket was removed or replaced; it is made anew", "address", path)
		l = s.again(ctx, path)
	}
	return nil
}

// look is how often it is seen to that the socket is there.
const look = 200 * time.Millisecond

// whenRemoved closes a listener when its socket is no more at its path, or something else is there:
// commands would reach that, or nobody. The function that it returns ends that, and reports whether
// it was so.
func whenRemoved(ctx context.Context, l net.Listener, path string) (removed func() bool) {
	ctx, stop := context.WithCancel(ctx)
	gone := make(chan bool, 1)
	was, _ := os.Lstat(path) // nil where it has gone already
	go func() {
		defer close(gone)
		for range ticks.Every(ctx, look) {
			is, err := os.Lstat(path)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(was, is) {
				gone <- true
				_ = l.Close()
				return
			}
		}
	}()
	return func() bool {
		stop()
		return <-gone
	}
}

// again listens as soon as its directory is there again; nil: ctx has ended before.
func (s *Server) again(ctx context.Context, path string) net.Listener {
	tick := time.NewTicker(look)
	defer tick.Stop()
	said := ""
	for {
		l, err := listenPrivately(ctx, path, s.Log)
		if err == nil {
			return l
		}
		if text := err.Error(); text != said {
			said = text
			s.Log.Warn("the admin socket can't be made anew yet; it is tried again and again", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// listenPrivately opens a socket of mode 0600.
func listenPrivately(ctx context.Context, path string, log *slog.Logger) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if errors.Is(err, unix.EADDRINUSE) { // the directory is the core's own, so whatever it is has no business there
		if removed := os.Remove(path); removed != nil {
			return nil, fmt.Errorf("%w; take away what is there: %w", err, removed)
		}
		l, err = (&net.ListenConfig{}).Listen(ctx, "unix", path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &ours{Listener: l, log: log, said: rate.NewLimiter(1, 5)}, nil
}

// ours takes connections of this user and of root alone, whoever else may have got at the socket,
// and never of what the core has started itself: a plugin that could change plugins could run
// anything.
type ours struct {
	net.Listener
	log  *slog.Logger
	said *rate.Limiter
}

func (l *ours) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		why := stranger(c)
		if why == "" {
			return c, nil
		}
		if l.said.Allow() {
			l.log.Warn("a connection to the admin socket was refused", "reason", why)
		}
		_ = c.Close()
	}
}

// stranger says why a connection is refused; empty: it isn't.
func stranger(c net.Conn) string {
	who, known := peer.Of(c)
	switch {
	case !known, who.PID == os.Getpid():
	case who.UID != 0 && who.UID != os.Geteuid():
		return fmt.Sprintf("process %d is of user %d", who.PID, who.UID)
	case who.PID != 0 && family.Descends(who.PID):
		return fmt.Sprintf("process %d was started by this control plane: plugins may not change plugins", who.PID)
	}
	return ""
}

// Handler returns the handler of the socket.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /plugins", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, http.StatusOK, s.Plugins()) })
	mux.HandleFunc("GET /core", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, http.StatusOK, s.Core()) })
	s.holds(mux)
	s.logs(mux)
	s.pins(mux)
	s.rollout(mux)
	mux.HandleFunc("GET /audit", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, http.StatusOK, s.Audit.Kept(r.FormValue("plugin")))
	})
	mux.HandleFunc("POST /plan", s.plan)
	mux.HandleFunc("POST /ui/code", s.code)
	mux.HandleFunc("GET /plugins/{name}", s.detail)
	mux.HandleFunc("POST /plugins/{name}/record", s.record)
	mux.HandleFunc("POST /plugins/{name}/{what}", s.change)
	return mux
}

func (s *Server) outdated() string {
	if s.Outdated == nil {
		return ""
	}
	return s.Outdated()
}

func (s *Server) detail(w http.ResponseWriter, r *http.Request) {
	for _, p := range s.Plugins() {
		if p.Name == r.PathValue("name") {
			d := Detail{Plugin: p, Changes: s.Swapper.History(p.Name), FileFault: s.Swapper.FileFault(), Outdated: s.outdated()}
			if s.Rows != nil {
				d.Tables, d.Dropped = s.Rows(p.Name)
			}
			s.answer(w, http.StatusOK, d)
			return
		}
	}
	s.answer(w, http.StatusNotFound, Outcome{Error: "there is no plugin " + r.PathValue("name")})
}

// maxOrder is how large a request may be.
const maxOrder = 4 << 20

func (s *Server) change(w http.ResponseWriter, r *http.Request) {
	var o Order
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		s.answer(w, http.StatusBadRequest, Outcome{Error: err.Error()})
		return
	}
	s.order(w, r, r.PathValue("what"), o.Request, swap.Options{DryRun: o.DryRun, Force: o.Force, Ephemeral: o.Ephemeral})
}

// order does something with a plugin.
func (s *Server) order(w http.ResponseWriter, r *http.Request, what string, change swap.Request, o swap.Options) {
	if !o.DryRun && !s.kept(w) {
		return
	}
	atLeisure(w)
	name := r.PathValue("name")
	var c *swap.Change
	var err error
	switch what {
	case "swap":
		c, err = s.Swapper.Swap(r.Context(), name, change, o)
	case "restart":
		c, err = s.Swapper.Restart(r.Context(), name, o)
	case "rollback":
		c, err = s.Swapper.Rollback(r.Context(), name, o)
	case "disable":
		c, err = s.Swapper.Disable(r.Context(), name, o)
	case "enable":
		c, err = s.Swapper.Enable(r.Context(), name, o)
	default:
		s.answer(w, http.StatusNotFound, Outcome{Error: "there is swap, restart, rollback, disable and enable, not " + what})
		return
	}
	if err != nil {
		s.answer(w, http.StatusConflict, Outcome{Change: c, Error: err.Error(), Guarded: errors.Is(err, swap.ErrRefused)})
		return
	}
	s.answer(w, http.StatusOK, Outcome{Change: c})
}

// kept reports whether what is asked for can be written down in the audit log; else it answers why
// not: who changes something must not go unseen.
func (s *Server) kept(w http.ResponseWriter) bool {
	err := s.Audit.Ready()
	if err != nil {
		s.answer(w, http.StatusServiceUnavailable, Outcome{Error: "nothing was changed, for it can't be written down who did it: " +
			err.Error() + "; make room for it, or start the control plane with another auditLog, or none"})
	}
	return err == nil
}

// atLeisure lets a request that has come whole take as long as it needs; the answer has its time
// again.
func atLeisure(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	_, _ = c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})
}

// answerTimeout is how long a client may take to read an answer, or some more of a recording.
const answerTimeout = time.Minute

func (s *Server) answer(w http.ResponseWriter, code int, body any) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
	text, err := s.Secrets.JSON(body)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte(`{"error":"the answer is no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n'))
}

// Plan is the body of a request for what a plugins.yaml would change, and Planned the answer.
type Plan struct {
	Text string `json:"text"`
}

// Planned is what would be done, in order.
type Planned struct {
	Changes []*swap.Change `json:"changes,omitempty"`
	Error   string         `json:"error,omitempty"`
}

func (s *Server) plan(w http.ResponseWriter, r *http.Request) {
	var p Plan
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder)).Decode(&p); err != nil {
		s.answer(w, http.StatusBadRequest, Planned{Error: err.Error()})
		return
	}
	changes, err := s.Swapper.Plan(r.Context(), []byte(p.Text))
	if err != nil {
		s.answer(w, http.StatusConflict, Planned{Changes: changes, Error: err.Error()})
		return
	}
	s.answer(w, http.StatusOK, Planned{Changes: changes})
}
