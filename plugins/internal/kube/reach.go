package kube

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// reach notes that an API server can't be reached: informers that have lists streamed to them try
// again without a word.
type reach struct {
	said LogLimiter

	mu  sync.Mutex
	log func(server string, err error)
	// ctx is the plugin's, for telling the core; failures are those since an answer.
	ctx      context.Context
	failures int
}

// Report has it logged to out, once a minute, when an API server of this access does not answer at
// all, and the core told (sdk.Lost, sdk.Found); ctx is the one that the plugin runs with.
func (a *Access) Report(ctx context.Context, out sdk.Publisher) {
	r := a.line()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx = ctx
	r.log = func(server string, err error) {
		out.Log(sdk.Warn, "the API server can't be reached; what is known stays, and it is tried again", "server", server, "error", err.Error())
	}
}

func (a *Access) line() *reach {
	if a.reach == nil { // none of DefaultAccess
		a.reach = &reach{}
	}
	return a.reach
}

// over is next, with a note of requests that got no answer.
func (r *reach) over(next http.RoundTripper) http.RoundTripper {
	return tripper(func(q *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(q)
		switch {
		case err == nil && answer.StatusCode < http.StatusInternalServerError:
			r.answered()
		case err != nil && !errors.Is(err, context.Canceled):
			r.failed(q.URL.Host, err)
		}
		return answer, err
	})
}

// errUnreachable stands for all reasons.
var errUnreachable = errors.New("unreachable")

func (r *reach) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures = 0; r.ctx != nil {
		sdk.Found(r.ctx)
	}
}

// lostAfter is how many requests in a row get no answer where an API server is away: connections
// break by themselves, too.
const lostAfter = 2

func (r *reach) failed(server string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures++; r.failures >= lostAfter && r.ctx != nil {
		sdk.Lost(r.ctx, err)
	}
	if r.log != nil && r.said.Allow(server, errUnreachable, time.Now()) { // reasons differ from try to try
		r.log(server, err)
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(q *http.Request) (*http.Response, error) { return t(q) }
