package sidecars

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
)

// seen is what a workload saw of a request or a connection.
type seen struct {
	// Remote is the address of the peer, Identity what its sidecar says of the client's
	// certificate.
	Remote, Identity string
}

// serveHTTP answers requests in a pod with what it saw of them.
func serveHTTP(t *testing.T, p *netns.Pod, port string) {
	t.Helper()
	l := p.Listen(t, net.JoinHostPort("0.0.0.0", port))
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(seen{r.RemoteAddr, r.Header.Get("X-Forwarded-Client-Cert")})
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
}

// serveTCP answers each line of a connection in a pod with what it saw of the connection.
func serveTCP(t *testing.T, p *netns.Pod, port string) {
	t.Helper()
	l := p.Listen(t, net.JoinHostPort("0.0.0.0", port))
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			ended.Go(func() {
				defer func() { _ = c.Close() }()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					_ = json.NewEncoder(c).Encode(seen{Remote: c.RemoteAddr().String()})
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); ended.Wait() })
}

// patience of a client.
const patience = 10 * time.Second

// askHTTP asks for a host from a pod.
func askHTTP(p *netns.Pod, address, host string) (seen, error) {
	a, s, err := askPath(p, scenario.Ask{Get: host + "/", At: address})
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%d %s", a.Status, a.Body)
	}
	return s, err
}

// exchange makes a request, or sends a line, from a pod.
func exchange(p *netns.Pod, c scenario.Ask) (scenario.Answer, seen, error) {
	if c.Get != "" {
		return askPath(p, c)
	}
	s, err := askTCP(p, c.At)
	return answered(http.StatusOK, nil, ""), s, err
}

func askPath(p *netns.Pod, c scenario.Ask) (a scenario.Answer, s seen, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	host, path, _ := strings.Cut(c.Get, "/")
	r, err := http.NewRequestWithContext(ctx, c.Method, "http://"+c.At+"/"+path, nil)
	if err != nil {
		return a, s, err
	}
	r.Host = host
	for name, value := range c.Headers {
		r.Header.Set(name, value)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true, DialContext: p.Dial}).RoundTrip(r)
	if err != nil {
		return a, s, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	_ = json.Unmarshal(b, &s) // if it is a workload's
	return answered(resp.StatusCode, resp.Header, string(b)), s, err
}

// askTCP sends a line from a pod.
func askTCP(p *netns.Pod, address string) (seen, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := p.Dial(ctx, "tcp", address)
	if err != nil {
		return seen{}, err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return seen{}, err
	}
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		return seen{}, err
	}
	var s seen
	return s, json.NewDecoder(c).Decode(&s)
}
