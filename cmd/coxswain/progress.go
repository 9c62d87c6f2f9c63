package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/coxswain-mesh/coxswain/core/swap/api"
)

// progress says in one line of a terminal how far something is that takes long. Where standard
// error is no terminal it says nothing.
type progress struct {
	out io.Writer

	mu   sync.Mutex
	last string
}

// progressOf returns that of a command.
func progressOf(p *program) *progress {
	if f, ok := p.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &progress{out: f}
	}
	return &progress{}
}

// eraseLine takes a terminal's line away.
const eraseLine = "\r\x1b[2K"

// says shows a text in the place of the one before.
func (g *progress) says(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.out == nil || text == g.last {
		return
	}
	const most = 100
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	g.last = text
	_, _ = io.WriteString(g.out, eraseLine+text)
}

// over takes the line away.
func (g *progress) over() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.out != nil && g.last != "" {
		_, _ = io.WriteString(g.out, eraseLine)
		g.last = ""
	}
}

// glimpse is how often it is asked how far a change is.
const glimpse = 500 * time.Millisecond

// ofChange says how far a change of a plugin is, until stop is called.
func (g *progress) ofChange(ctx context.Context, p *program, at which, name, what string) (stop func()) {
	if g.out == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	began, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(glimpse)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var is api.Detail
			text := name + ": " + what
			if _, _, err := ask(ctx, p, at, http.MethodGet, "/plugins/"+url.PathEscape(name), nil, &is); err == nil {
				if n := len(is.Changes); n > 0 && is.Changes[n-1].At.After(began.Add(-time.Second)) {
					text = name + ": " + is.Changes[n-1].Line()
				}
			}
			if ctx.Err() == nil {
				g.says(fmt.Sprintf("%s, for %v", text, time.Since(began).Round(time.Second)))
			}
		}
	}()
	return func() { cancel(); <-ended; g.over() }
}
