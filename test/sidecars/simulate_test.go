package sidecars

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/simulator"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
)

// dump is what the control plane has for a pod's sidecar. The world remembers it.
func (w *world) dump(t *testing.T, p *netns.Pod) *simulator.Config {
	t.Helper()
	c, err := simulator.Read(w.plane.Dump(t, w.bootstrap[p]))
	if err != nil {
		t.Fatal(err)
	}
	w.walked[p] = c
	return c
}

// journey is a call on the simulator: through the sidecar of the pod that asks and through that of
// the pod that is asked.
type journey struct {
	conn    simulator.Connection
	request *simulator.Request
	// took are the clusters by pods, ways the outcomes in order.
	took map[string]string
	ways []*simulator.Outcome
}

// simulate makes a call on the simulator and checks what comes of it as if it were real.
func (w *world) simulate(t *testing.T, c scenario.Call) error {
	t.Helper()
	j, err := w.begin(c)
	if err != nil {
		return err
	}
	err = w.travel(t, j, c)
	for pod, want := range c.Clusters {
		if j.took[pod] != want {
			err = cmp.Or(err, fmt.Errorf("%s's sidecar takes %q, not %s", pod, j.took[pod], want))
		}
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, j.ways)
	}
	return err
}

func (w *world) begin(c scenario.Call) (*journey, error) {
	at, err := netip.ParseAddrPort(c.At)
	if err != nil {
		return nil, err
	}
	j := &journey{conn: simulator.Connection{Source: w.source(c.Pod), Destination: at}, took: map[string]string{}}
	if c.Get != "" {
		host, path, _ := strings.Cut(c.Get, "/")
		j.conn.Protocol = "http/1.1"
		j.request = &simulator.Request{Method: c.Method, Host: host, Path: "/" + path, Header: http.Header{}}
		for name, value := range c.Headers {
			j.request.Header.Set(name, value)
		}
	}
	return j, nil
}

func (w *world) source(pod string) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(w.pod(pod).Address), 40000)
}

// travel goes all the way.
func (w *world) travel(t *testing.T, j *journey, c scenario.Call) error {
	t.Helper()
	header := http.Header{}
	if pod := cmp.Or(c.Pod, "client"); w.sidecar[w.pod(pod)] != nil {
		j.conn.Intercepted = 15001
		o, done, err := w.pass(t, j, pod, c)
		if done {
			return err
		}
		header = o.Answer.Header
		s := o.Upstream.Clusters[0]
		own := simulator.Identity{URIs: []string{spiffe(w.account(pod))}}
		next, err := s.Endpoints[0].Onward(j.conn.Source, j.conn.Protocol, own)
		if err != nil {
			return err
		}
		if tls := s.Endpoints[0].TLS; tls != nil {
			if err := tls.Trusts(simulator.Identity{URIs: []string{spiffe("web")}}); err != nil {
				return err
			}
		}
		j.conn = next
		if s.Request != nil {
			j.request = s.Request
		}
	}
	j.conn.Intercepted = 15006
	if _, done, err := w.pass(t, j, "server", c); done {
		return err
	}
	return w.arrive(j, c, header)
}

// pass goes through a pod's sidecar. done: it ends there, as wanted if err is nil.
func (w *world) pass(t *testing.T, j *journey, pod string, c scenario.Call) (o *simulator.Outcome, done bool, err error) {
	t.Helper()
	o = w.dump(t, w.pod(pod)).Walk(j.conn, j.request)
	j.ways = append(j.ways, o)
	if len(o.Upstream.Clusters) > 0 {
		j.took[pod] = o.Upstream.Clusters[0].Cluster
	}
	switch o.Verdict {
	case simulator.Forwarded:
		return o, false, nil
	case simulator.Closed:
		if !c.Refused {
			err = errors.New("it is refused")
		}
		return o, true, err
	case simulator.Answered:
		if c.Refused {
			return o, true, refusal(nil)
		}
		return o, true, c.Check(answered(o.Answer.Status, o.Answer.Header, o.Answer.Body))
	}
	return o, true, errors.New(o.Reason)
}

// arrive checks what comes of a call that the server's sidecar lets through: the workload answers.
func (w *world) arrive(j *journey, c scenario.Call, header http.Header) error {
	if c.Refused {
		return refusal(nil)
	}
	at := j.ways[len(j.ways)-1].Upstream.Clusters[0].Endpoints[0].Address
	if !slices.Contains([]string{"10.244.0.2:8080", "10.244.0.2:9000", "10.244.0.2:9999"}, at) {
		return fmt.Errorf("nobody listens at %s", at)
	}
	client := ""
	if tls := j.conn.TLS; tls != nil && tls.Peer != nil && j.request != nil {
		client = "URI=" + tls.Peer.URIs[0]
	}
	return cmp.Or(c.Check(answered(http.StatusOK, maps.Clone(header), "")), known(c.Identity, client))
}

// account is the service account that a pod runs as.
func (w *world) account(pod string) string {
	if pod == "server" {
		return "web"
	}
	return pod
}
