package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

var calls atomic.Int64

// play makes a call and checks what comes of it.
func (w *world) play(c scenario.Call) error {
	id := fmt.Sprint("call-", calls.Add(1))
	answers, err := w.ask(c, id)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if err := c.Check(a); err != nil {
			return err
		}
	}
	if err := c.CheckAll(answers, slack); err != nil {
		return err
	}
	return w.aftermath(c, id)
}

// ask makes the call's requests.
func (w *world) ask(c scenario.Call, id string) ([]scenario.Answer, error) {
	answers := make([]scenario.Answer, max(c.Times, 1))
	errs := make([]error, len(answers))
	var all sync.WaitGroup
	for i := range answers {
		if !c.Together {
			answers[i], errs[i] = w.request(c, id)
			continue
		}
		all.Go(func() { answers[i], errs[i] = w.request(c, id) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func (w *world) request(c scenario.Call, id string) (a scenario.Answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Deadline)
	defer cancel()
	r, port, err := w.message(ctx, c)
	if err != nil {
		return a, err
	}
	r.Header.Set(callHeader, id)
	t := &http.Transport{DisableKeepAlives: true, TLSClientConfig: w.tls(), DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, fmt.Sprint("127.0.0.1:", port))
	}}
	began := time.Now()
	resp, err := t.RoundTrip(r)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	a = scenario.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body), Took: time.Since(began)}
	_ = json.Unmarshal(body, &a.Seen) // if it is a backend's
	return a, err
}

// message is the request of a call, and the gateway's port that it goes to.
func (w *world) message(ctx context.Context, c scenario.Call) (r *http.Request, port int, err error) {
	port, scheme := w.Gateway, "http"
	switch {
	case c.TLS:
		port, scheme = w.Passthrough, "https"
	case c.Through == "second":
		port = w.Second
	case c.Through == "edge":
		port = w.Edge
	case c.Through == "ingress":
		port = w.Ingress
	}
	r, err = http.NewRequestWithContext(ctx, c.Method, scheme+"://"+c.Get, nil)
	if err != nil {
		return nil, 0, err
	}
	for name, value := range c.Headers {
		r.Header.Set(name, value)
	}
	switch {
	case c.Claims != nil:
		r.Header.Set("Authorization", "Bearer "+w.issuer.token(c.Claims))
	case c.Token != "":
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	return r, port, nil
}

// slack is by how many percent a share may be off. With the 200 requests of a scenario that is more
// than four times the deviation to expect.
const slack = 15

// aftermath looks at what a call leaves behind: what backends saw of it (copies may come later than
// the answer), and the access log.
func (w *world) aftermath(c scenario.Call, id string) error {
	deadline := time.Now().Add(patience)
	for {
		err := w.left(c, id)
		if err == nil || c.Eventually || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// patience with what comes after an answer.
const patience = 10 * time.Second

func (w *world) left(c scenario.Call, id string) error {
	if got := w.backends.tried(id); c.Tried != nil && !maps.Equal(got, c.Tried) {
		return fmt.Errorf("tried: %v, want %v", got, c.Tried)
	}
	if c.Logged == "" {
		return nil
	}
	log, err := os.ReadFile(w.gateway.Log)
	if err == nil && !strings.Contains(string(log), c.Logged) {
		err = fmt.Errorf("no line of the access log has %q", c.Logged)
	}
	return err
}
