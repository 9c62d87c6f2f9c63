package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestSocketReplaced: whatever takes the place of the socket, commands reach the core at its path
// again; while what is there can't be taken away the log says what to do.
func TestSocketReplaced(t *testing.T) {
	dir, err := os.MkdirTemp("", "sock") // short, as paths of sockets must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, Socket)
	said := &heard{}
	s := &Server{Core: func() Core { return Core{PID: 7} }, Log: slog.New(slog.NewTextHandler(said, nil))}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, path) }()
	asks := func() error {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		c := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: wait.Deadline}
		r, err := c.Get("http://core/nothing")
		if err != nil {
			return err
		}
		return r.Body.Close()
	}
	wait.For(t, "it answers", asks)
	other := filepath.Join(dir, "other")
	for name, replace := range map[string]func() error{
		"removed": func() error { return os.Remove(path) },
		"a file":  func() error { return errors.Join(os.WriteFile(other, nil, 0o600), os.Rename(other, path)) },
		"a link":  func() error { return errors.Join(os.Symlink("/nowhere", other), os.Rename(other, path)) },
		"another socket": func() error {
			l, err := net.Listen("unix", other)
			if err != nil {
				return err
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			return errors.Join(l.Close(), os.Rename(other, path))
		},
		"a directory": func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		if err := replace(); err != nil {
			t.Fatal(name, err)
		}
		wait.For(t, "it answers after "+name, asks)
	}
	// What can't be taken away.
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	wait.For(t, "it says what to do", func() error {
		if !strings.Contains(said.String(), "take away what is there") {
			return errors.New(said.String())
		}
		return nil
	})
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	wait.For(t, "it answers once more", asks)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// heard is a log that may be read while it is written.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}
