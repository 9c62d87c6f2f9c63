package traffic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/simulator"
	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
)

// simulate makes a call on the simulator and checks what comes of it as if it were real. Shares are
// what is wanted to the percent.
func (w *world) simulate(c scenario.Call) error {
	o, err := w.walk(c)
	if err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("%w\n%s", err, o) }
	possible, tried, err := w.possible(o, c)
	if err != nil {
		return fail(err)
	}
	answers := draw(possible, max(c.Times, 1))
	for _, a := range answers {
		if err := c.Check(a); err != nil {
			return fail(err)
		}
	}
	if c.Same && o.Upstream.Sticky == "" {
		return fail(errors.New("nothing of the request chooses the endpoint"))
	}
	if c.Same {
		answers = answers[:1]
	}
	if err := c.CheckAll(answers, 1); err != nil {
		return fail(err)
	}
	if c.Tried != nil && !maps.Equal(tried, c.Tried) {
		return fail(fmt.Errorf("tried: %v, want %v", tried, c.Tried))
	}
	return nil
}

// walk is a call's way through its gateway.
func (w *world) walk(c scenario.Call) (*simulator.Outcome, error) {
	r, port, err := w.message(context.Background(), c)
	if err != nil {
		return nil, err
	}
	config := w.walks[w.gateway]
	switch port {
	case w.Edge:
		config = w.walks[w.edge]
	case w.Ingress:
		config = w.walks[w.ingress]
	case w.Second:
		config = w.walks[w.second]
	}
	conn := simulator.Connection{Source: netip.MustParseAddrPort("127.0.0.1:50000"), Destination: netip.AddrPortFrom(loopback, uint16(port))}
	if c.TLS {
		conn.TLS = &simulator.TLS{SNI: r.Host}
		return config.Walk(conn, nil), nil
	}
	return config.Walk(conn, &simulator.Request{Method: r.Method, Host: r.Host, Path: r.URL.RequestURI(), Header: r.Header, At: time.Now()}), nil
}

var loopback = netip.MustParseAddr("127.0.0.1")

// likely is an answer that comes in some percent of all cases.
type likely struct {
	percent float64
	answer  scenario.Answer
}

// possible are the answers that an outcome leads to, with what backends of the test do, and how
// often each backend is tried by all requests.
func (w *world) possible(o *simulator.Outcome, c scenario.Call) (list []likely, tried map[string]int, err error) {
	tried = map[string]int{}
	whole := 100.0
	for _, chance := range o.Chances {
		list = append(list, likely{chance.Percent, scenario.Answer{Status: chance.Status}})
		whole -= chance.Percent
	}
	switch o.Verdict {
	case simulator.Answered:
		return append(list, likely{whole, scenario.Answer{Status: o.Answer.Status, Body: o.Answer.Body, Header: o.Answer.Header, Took: o.Delay}}), tried, nil
	case simulator.Forwarded:
	default:
		return nil, nil, fmt.Errorf("%s: %s", o.Verdict, o.Reason)
	}
	for _, s := range append(o.Upstream.Clusters, o.Upstream.Mirrors...) {
		for _, e := range s.Endpoints {
			if w.stranger(e) {
				continue
			}
			tried[w.backendAt(e.Address)] += int(float64(max(c.Times, 1)) * s.Percent * e.Percent / 10000)
		}
	}
	for _, s := range o.Upstream.Clusters {
		for _, e := range s.Endpoints {
			list = append(list, likely{whole * s.Percent * e.Percent / 10000, w.backend(o, s, e, c)})
		}
	}
	return list, tried, nil
}

// backend is what a backend of the test answers (backend_test.go), and what becomes of that on its
// way back.
func (w *world) backend(o *simulator.Outcome, s simulator.Share, e simulator.Endpoint, c scenario.Call) scenario.Answer {
	a := scenario.Answer{Status: http.StatusOK, Header: o.Answer.Header, Took: o.Delay}
	if w.stranger(e) {
		return scenario.Answer{Status: http.StatusServiceUnavailable}
	}
	a.Seen.Name = w.backendAt(e.Address)
	path := c.Get
	if r := s.Request; r != nil {
		path = r.Path
		a.Seen.Headers = r.Header.Clone()
		a.Seen.Headers.Set("Host", r.Host)
		a.Seen.Path, _, _ = strings.Cut(path, "?")
	}
	words := strings.Split(path, "/")
	for i, word := range words[:len(words)-1] {
		switch argument := words[i+1]; word {
		case "status":
			a.Status, _ = strconv.Atoi(argument)
		case "wait":
			if d, _ := time.ParseDuration(argument); o.Upstream.Timeout > 0 && d > o.Upstream.Timeout {
				a = scenario.Answer{Status: http.StatusGatewayTimeout, Took: o.Upstream.Timeout}
			}
		case "fail":
			a.Status = http.StatusServiceUnavailable
		}
	}
	if a.Seen.Name == "failing" {
		a.Status = http.StatusServiceUnavailable
	}
	return a
}

// stranger reports whether a backend is somebody whom the proxy doesn't trust.
func (w *world) stranger(e simulator.Endpoint) bool {
	return e.TLS != nil && e.TLS.Trusts(simulator.Identity{DNS: w.secure.Certificate().DNSNames}) != nil
}

// backendAt names the backend at an address.
func (w *world) backendAt(address string) string {
	for name, port := range map[string]int{"v1": w.V1, "v2": w.V2, "near": w.Near, "far": w.Far, "failing": w.Failing, "secure": w.Secure} {
		if address == fmt.Sprint("127.0.0.1:", port) {
			return name
		}
	}
	return address
}

// draw makes as many answers as there are requests, each as often as its share wants; of several
// that may come of a single one, all.
func draw(list []likely, n int) (answers []scenario.Answer) {
	if len(list) > 1 {
		n = max(n, 100)
	}
	for _, l := range list {
		for range int(float64(n)*l.percent/100 + 0.5) {
			answers = append(answers, l.answer)
		}
	}
	return answers
}
