package expectations

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/coxswain-mesh/coxswain/cmd/internal/bootstrap"
)

// check reports the first thing of a file that can't be.
func (f *File) check() error {
	at := map[netip.Addr]string{}
	for _, name := range slices.Sorted(maps.Keys(f.Workloads)) {
		w := f.Workloads[name]
		if w == nil {
			return fmt.Errorf("workloads.%s is empty", name)
		}
		if ip, err := netip.ParseAddr(w.IP); err == nil && at[ip] == "" {
			at[ip] = name
		} else if err == nil {
			return fmt.Errorf("workloads.%s.ip: %s has that of %s, too", name, w.IP, at[ip])
		} else if w.IP != "" { // of a control plane that runs none is asked
			return fmt.Errorf("workloads.%s.ip: %q is no IP address", name, w.IP)
		}
		if w.Type == "" {
			w.Type = bootstrap.Sidecar
		}
		if _, err := w.node(name); err != nil {
			return fmt.Errorf("workloads.%s: %w", name, err)
		}
	}
	names := map[string]bool{}
	for i, e := range f.Expectations {
		if names[e.Name] {
			return fmt.Errorf("expectations[%d].name: another one is named %q, too", i, e.Name)
		}
		names[e.Name] = true
		if err := errors.Join(f.checkRequest(e.Request), f.checkExpect(e.Expect)); err != nil {
			return fmt.Errorf("expectations[%d] (line %d): %w", i, e.line, err)
		}
	}
	return nil
}

func (f *File) known(field, name string) error {
	if name == "" || f.Workloads[name] != nil {
		return nil
	}
	return fmt.Errorf("%s: there is no workload %q", field, name)
}

func (f *File) checkRequest(r Request) error {
	switch {
	case (r.From == "") == (r.At == ""):
		return errors.New("request: it wants from, the workload that makes it, or at, the one at whose proxy it comes in")
	case r.From != "" && r.Peer != "":
		return errors.New("request.peer: with from, the workload's own identity is known")
	case r.From != "" && r.Source != "":
		return errors.New("request.source: with from, the workload's own address is known")
	}
	if r.To != "" {
		if _, err := netip.ParseAddrPort(r.To); err != nil {
			return fmt.Errorf("request.to: %q is not IP:PORT", r.To)
		}
	}
	if r.Source != "" {
		_, errA := netip.ParseAddr(r.Source)
		if _, err := netip.ParseAddrPort(r.Source); err != nil && errA != nil {
			return fmt.Errorf("request.source: %q is neither IP nor IP:PORT", r.Source)
		}
	}
	return errors.Join(f.known("request.from", r.From), f.known("request.at", r.At))
}

func (f *File) checkExpect(e Expect) error {
	n := 0
	for _, is := range []bool{len(e.To) > 0, e.Refused != nil, e.Answer != nil, e.Closed} {
		if is {
			n++
		}
	}
	if n != 1 {
		return errors.New("expect: it wants one of to, refused, answer and closed")
	}
	if len(e.To) == 0 && (len(e.Mirrors) > 0 || e.Timeout != "" || e.Retries != nil) {
		return errors.New("expect: mirrors, timeout and retries go with to")
	}
	if e.Timeout != "" && e.Timeout != none {
		if _, err := time.ParseDuration(e.Timeout); err != nil {
			return fmt.Errorf("expect.timeout: %q is no duration such as 2s", e.Timeout)
		}
	}
	for i, d := range slices.Concat(e.To, e.Mirrors) {
		if (d.Host == "") == (d.Cluster == "") {
			return fmt.Errorf("expect: destination %d wants host or cluster", i+1)
		}
		if d.Cluster != "" && (d.Port != 0 || d.Subset != nil) {
			return fmt.Errorf("expect: destination %d: port and subset are in the cluster's name already", i+1)
		}
	}
	if e.Refused != nil {
		return f.known("expect.refused.by", e.Refused.By)
	}
	if e.Answer != nil {
		return f.known("expect.answer.by", e.Answer.By)
	}
	return nil
}

// node is who the workload's proxy says it is: as with an agent, which has its certificates.
func (w *Workload) node(name string) (*corev3.Node, error) {
	c := bootstrap.Config{
		Type: w.Type, Name: name, Namespace: w.Namespace, IP: cmp.Or(w.IP, nobody), Domain: domain, Labels: w.Labels, Locality: w.Locality,
		ClusterID: w.ClusterID, Network: w.Network, IstioVersion: istioVersion, Metadata: map[string]any{},
		Protocol: bootstrap.Delta, XDS: "127.0.0.1:15010",
	}
	if c.Namespace == "" {
		c.Namespace = "default"
	}
	if c.ClusterID == "" {
		c.ClusterID = "Kubernetes"
	}
	if len(w.Metadata) > 0 {
		if err := json.Unmarshal(w.Metadata, &c.Metadata); err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
	}
	c.Metadata["SERVICE_ACCOUNT"] = w.account()
	if _, err := bootstrap.New(c); err != nil {
		return nil, err
	}
	n, err := c.Node()
	if err == nil {
		delete(n.Metadata.Fields, "COXSWAIN_NO_AGENT")
	}
	return n, err
}

func (w *Workload) account() string {
	if w.ServiceAccount == "" {
		return "default"
	}
	return w.ServiceAccount
}

func (w *Workload) namespace() string {
	if w.Namespace == "" {
		return "default"
	}
	return w.Namespace
}

// domain of the cluster, and the version of Istio whose answers the proxies understand.
const domain, istioVersion = "cluster.local", "1.31.0"

// nobody is an address that is nobody's (RFC 5737).
const nobody = "192.0.2.1"

// none as a timeout: it may take for ever.
const none = "none"
