package mesh

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Target is what a client asks for.
type Target struct {
	// Address to dial, Host and Path to ask for.
	Address, Host, Path string
}

// String returns the URL without its scheme, and the address that is called.
func (t Target) String() string { return t.Host + t.Path + " at " + t.Address }

// Ask makes one request, over a connection of its own, and returns the status and the body.
func (t Target) Ask(ctx context.Context) (int, string, error) {
	return t.ask(ctx, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
}

func (t Target) ask(ctx context.Context, c *http.Client) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.Address+t.Path, nil)
	if err != nil {
		return 0, "", err
	}
	r.Host = t.Host
	resp, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// Shares asks n times and counts the answers: bodies of those with status 200, and otherwise the
// status or the error.
func (t Target) Shares(ctx context.Context, n int) map[string]int {
	counts := map[string]int{}
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	for range n {
		counts[answer(t.ask(ctx, c))]++
	}
	return counts
}

// answer is the body of an answer with status 200, otherwise the status or the error.
func answer(code int, body string, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case code != http.StatusOK:
		return fmt.Sprint(code)
	}
	return body
}

// Traffic is a client that asks all the time.
type Traffic struct {
	target Target
	pause  time.Duration
	stop   context.CancelFunc
	ended  sync.WaitGroup

	mu     sync.Mutex
	asked  int
	failed []string
}

// pause is between two requests of a client.
var pause = flag.Duration("traffic.pause", 15*time.Millisecond, "how long a client waits between two requests")

// NewTraffic starts two clients, one that keeps its connection and one that opens one for each
// request. A request counts as failed if its answer isn't 200.
func NewTraffic(t testing.TB, target Target) *Traffic { return NewSlowTraffic(t, target, *pause) }

// NewSlowTraffic does so with another pause between two requests of a client.
func NewSlowTraffic(t testing.TB, target Target, pause time.Duration) *Traffic {
	ctx, stop := context.WithCancel(context.Background())
	f := &Traffic{target: target, pause: pause, stop: stop}
	for _, keep := range []bool{true, false} {
		f.ended.Go(func() { f.run(ctx, &http.Client{Transport: &http.Transport{DisableKeepAlives: !keep}}) })
	}
	t.Cleanup(func() { f.Stop() })
	return f
}

func (f *Traffic) run(ctx context.Context, c *http.Client) {
	defer c.CloseIdleConnections()
	for ctx.Err() == nil {
		at := time.Now()
		// A request that has begun is finished: the end of the test is no failure.
		code, body, err := f.target.ask(context.WithoutCancel(ctx), c)
		f.note(at, code, body, err)
		select {
		case <-ctx.Done():
		case <-time.After(f.pause):
		}
	}
}

func (f *Traffic) note(at time.Time, code int, body string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if err != nil || code != http.StatusOK {
		f.failed = append(f.failed, fmt.Sprintf("%s %s: %d %q %v", at.Format("15:04:05.000"), f.target, code, body, err))
	}
}

// Stop ends the clients and returns how many requests they made and those that failed. It may be
// called twice.
func (f *Traffic) Stop() (asked int, failed []string) {
	f.stop()
	f.ended.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked, f.failed
}

// Asked returns how many requests were made so far.
func (f *Traffic) Asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}
