package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

const (
	// fetches that an instance may have under way.
	fetches = 16
	// fetchTime is how long one may take, and takes where the module doesn't say.
	fetchTime = 30 * time.Second
	// room is what fits into a message, beside what surrounds it.
	room = session.MaxMessage - 4096
)

// fetcher does HTTP for modules, where it is granted.
type fetcher struct {
	grants  *grants
	targets []target
	client  *http.Client
}

func newFetcher(g *grants) *fetcher {
	f := &fetcher{grants: g}
	for _, p := range g.HTTP {
		t, _ := parseTarget(p) // newGrants has checked it.
		f.targets = append(f.targets, t)
	}
	f.client = &http.Client{
		// No proxy: the environment is the core's.
		Transport:     &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true},
		CheckRedirect: func(r *http.Request, via []*http.Request) error { return f.redirect(r, len(via)) },
	}
	return f
}

func (f *fetcher) close() { f.client.CloseIdleConnections() }

// granted refuses URLs that allow.http does not name, and logs once what to add.
func (f *fetcher) granted(u *url.URL) error {
	for _, t := range f.targets {
		if t.covers(u) {
			return nil
		}
	}
	f.grants.warn("http "+u.Host, fmt.Sprintf("the module was refused %s://%s; to grant it add to the entry in plugins.yaml: allow: {http: [%q]}",
		u.Scheme, u.Host, u.Scheme+"://"+u.Host+"/*"))
	return fmt.Errorf("%s://%s is not granted; add it to allow.http", u.Scheme, u.Host)
}

func (f *fetcher) redirect(r *http.Request, hops int) error {
	if hops >= 5 {
		return errors.New("more than 5 redirections")
	}
	u, err := checkURL(r.URL.String())
	if err != nil {
		return err
	}
	return f.granted(u)
}

// fetch does a call; what went wrong is in the answer.
func (f *fetcher) fetch(ctx context.Context, m *pb.Fetch) *pb.Fetched {
	answer, err := f.do(ctx, m)
	if err != nil {
		return &pb.Fetched{Id: m.Id, Error: err.Error()}
	}
	return answer
}

func (f *fetcher) do(ctx context.Context, m *pb.Fetch) (*pb.Fetched, error) {
	u, err := checkURL(m.Url)
	if err != nil {
		return nil, err
	}
	if err := f.granted(u); err != nil {
		return nil, err
	}
	limit := fetchTime
	if m.TimeoutMs > 0 {
		limit = min(limit, time.Duration(m.TimeoutMs)*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, m.Method, u.String(), bytes.NewReader(m.Body))
	if err != nil {
		return nil, err
	}
	for name, value := range m.Headers {
		r.Header.Set(name, value)
	}
	got, err := f.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	return fetched(m.Id, got)
}

// fetched makes an answer that fits into a message.
func fetched(id uint64, r *http.Response) (*pb.Fetched, error) {
	m := &pb.Fetched{Id: id, Status: uint32(r.StatusCode), Headers: map[string]string{}}
	for name := range r.Header {
		m.Headers[name] = r.Header.Get(name)
	}
	left := room - m.Size()
	if left < 0 {
		return nil, errors.New("the answer's headers are too large")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(left)+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > left:
		return nil, fmt.Errorf("the answer is larger than %d bytes, which is what a message holds; ask for less at once", left)
	}
	m.Body = body
	return m, nil
}
