package reliability

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

const pagePromise = "nobody else waits; memory stays bounded; /ready answers"

// pageTrials misuse the HTTP ports.
func pageTrials() []trial {
	return []trial{
		{name: "dumps that nobody reads", promise: pagePromise, do: func(w *world) {
			w.unreadPages(300, strings.Repeat("GET /debug/pprof/goroutine?debug=2 HTTP/1.1\r\nHost: x\r\n\r\n", 50))
		}},
		{name: "metrics that nobody reads", promise: pagePromise, do: func(w *world) {
			w.unreadPages(300, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 50))
		}},
		{name: "pages that nobody reads", promise: pagePromise, do: func(w *world) {
			w.unreadPages(300, strings.Repeat("GET /debug/configs HTTP/1.1\r\nHost: x\r\n\r\nGET /debug/services HTTP/1.1\r\nHost: x\r\n\r\n", 25))
		}},
		{name: "slow requests of pages", promise: pagePromise, do: slowRequests},
		{name: "long requests of pages", promise: pagePromise, do: longRequests},
	}
}

// stranger's connection to the HTTP port, or to that of metrics.
func (w *world) page(ctx context.Context, i int) (net.Conn, error) {
	address := w.plane.HTTP
	if i%2 == 1 {
		address = w.plane.Monitoring
	}
	c, err := dialer(stranger)(ctx, address)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = c.Close() })
		_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
	}
	return c, err
}

// unreadPages asks and never reads.
func (w *world) unreadPages(clients int, text string) {
	w.under(func(ctx context.Context, ready func()) {
		many(clients, func(i int) {
			insist(ctx, func(ctx context.Context) {
				c, err := w.page(ctx, i)
				if err != nil {
					return
				}
				defer func() { _ = c.Close() }()
				_, _ = c.Write([]byte(text))
				ready()
				pause(ctx, 8*time.Second)
			})
		})
	})
	w.ready()
}

// slowRequests has 2,000 connections that send a byte of a request now and then.
func slowRequests(w *world) {
	w.under(func(ctx context.Context, ready func()) {
		many(2_000, func(i int) {
			c, err := w.page(ctx, i)
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			_, err = c.Write([]byte("GET /ready HTTP/1.1\r\nHost: x\r\nX: "))
			for n := 0; err == nil && ctx.Err() == nil; n++ {
				_, err = c.Write([]byte("x"))
				if n == 3 {
					ready()
				}
				pause(ctx, 500*time.Millisecond)
			}
			ready()
			<-ctx.Done()
		})
	})
	w.ready()
}

// longRequests sends bodies and headers without end.
func longRequests(w *world) {
	chunk := []byte(strings.Repeat("x", 64<<10))
	w.underBurst(func(ctx context.Context, ready func()) {
		many(20, func(i int) {
			insist(ctx, func(ctx context.Context) {
				c, err := w.page(ctx, i)
				if err != nil {
					return
				}
				defer func() { _ = c.Close() }()
				head := "POST /debug/plugins HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n"
				if i%4 > 1 {
					head = "GET /debug/plugins HTTP/1.1\r\nX: "
				}
				for _, err = c.Write([]byte(head)); err == nil && ctx.Err() == nil; _, err = c.Write(chunk) {
					ready()
				}
			})
		})
	})
	w.ready()
}

// ready: readiness can be asked for.
func (w *world) ready() {
	w.t.Helper()
	w.eventually("/ready answers", func() error {
		_, err := w.plane.Get("/ready")
		return err
	})
}

// eventually waits as wait.For does, but says so in the figures, and goes on.
func (w *world) eventually(what string, check func() error) bool {
	w.t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return true
		}
		if time.Since(began) > w.patience() {
			w.t.Errorf("not true after %v: %s: %v", w.patience(), what, err)
			w.note("never: %s", what)
			return false
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (w *world) took(what string, began time.Time) {
	w.note("%s after %s", what, fmt.Sprint(time.Since(began).Round(100*time.Millisecond)))
}
