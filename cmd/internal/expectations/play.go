package expectations

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/bootstrap"
	"github.com/coxswain-mesh/coxswain/cmd/internal/plan"
	"github.com/coxswain-mesh/coxswain/cmd/internal/question"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/simulator"
)

// Report is what came of a file's expectations.
type Report struct {
	File    string   `json:"file"`
	Results []Result `json:"results"`
	// Rules are those of all workloads' configurations, in order; none where only some expectations
	// were played.
	Rules []Rule `json:"rules,omitempty"`
	// Faults are what is wrong with objects of the directory.
	Faults []plan.Fault `json:"faults,omitempty"`
}

// Result is what came of an expectation.
type Result struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	// Faults say how it is otherwise than expected; none: it is as expected.
	Faults []string      `json:"faults,omitempty"`
	Took   time.Duration `json:"-"`
	// Walks are the ways through the proxies, the client's first.
	Walks []Walk `json:"walks"`
}

// Walk is a way through a proxy.
type Walk struct {
	Workload string             `json:"workload"`
	Outcome  *simulator.Outcome `json:"outcome"`
}

// Failed reports whether an expectation failed, or an object is refused.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Results, func(r Result) bool { return len(r.Faults) > 0 }) || r.Refuses()
}

// Refuses reports whether an object of the directory is refused, so that what is served lacks it.
func (r *Report) Refuses() bool {
	return slices.ContainsFunc(r.Faults, func(f plan.Fault) bool { return f.State == "refused" })
}

// Runner is how files are played.
type Runner struct {
	// Program is the path of the coxswain that serves the directory, Environ its environment.
	Program string
	Environ []string
	// Patience bounds its start, and its answers to each proxy.
	Patience time.Duration
	// Only has a part of the names of expectations to play; empty: all.
	Only string
}

// world is a file's proxies with what they have.
type world struct {
	file    *File
	configs map[string]*simulator.Config
	nodes   map[string]string // ids
	at      map[netip.Addr]string
}

// Run plays a file's expectations. The error is about what could not be played.
func (r Runner) Run(ctx context.Context, f *File) (*Report, error) {
	w := &world{file: f, configs: map[string]*simulator.Config{}, nodes: map[string]string{}, at: map[netip.Addr]string{}}
	names := sortedKeys(f.Workloads)
	proxies, err := w.proxies(names)
	if err != nil {
		return nil, err
	}
	side := plan.Side{
		Flag: f.Path + ": config", Program: r.Program, Environ: r.Environ, Dir: f.beside(f.Config), MeshConfig: f.beside(f.MeshConfig),
		NetworksConfig: f.beside(f.NetworksConfig), Plugins: f.beside(f.Plugins),
	}
	configs, objects, err := side.Configs(ctx, proxies, r.Patience)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		w.configs[name] = configs[i]
	}
	report := &Report{File: f.Path, Results: []Result{}}
	if report.Faults, err = plan.FaultsOf(objects, side.Dir); err != nil {
		return nil, err
	}
	if err := w.play(report, r.Only); err != nil {
		return nil, err
	}
	if r.Only == "" {
		report.Rules = w.rules(report.Results, objects, side.Dir)
	}
	return report, nil
}

// proxies are who asks, and are noted by name and address.
func (w *world) proxies(names []string) (all []plan.Proxy, err error) {
	for _, name := range names {
		n, err := w.file.Workloads[name].node(name)
		if err != nil {
			return nil, fmt.Errorf("%s: workloads.%s: %w", w.file.Path, name, err)
		}
		all = append(all, plan.Proxy{Node: n})
		w.nodes[name] = n.Id
		w.at[netip.MustParseAddr(w.file.Workloads[name].IP)] = name
	}
	return all, nil
}

// play plays the expectations whose names contain a text.
func (w *world) play(report *Report, only string) (err error) {
	for _, e := range w.file.Expectations {
		if !strings.Contains(e.Name, only) {
			continue
		}
		began := time.Now()
		result := Result{Name: e.Name, Line: e.line}
		if result.Walks, err = w.walk(e.Request); err != nil {
			return fmt.Errorf("%s:%d: %w", w.file.Path, e.line, err)
		}
		result.Faults = w.compare(e, result.Walks)
		result.Took = time.Since(began)
		report.Results = append(report.Results, result)
	}
	return nil
}

// walk goes through the proxy of the request, and through those of workloads that it is sent to.
func (w *world) walk(r Request) ([]Walk, error) {
	name := r.From + r.At
	q := question.Question{To: r.To, From: r.Source, SNI: r.SNI, Peer: r.Peer, Method: r.Method}
	if q.Method == "" {
		q.Method = "GET"
	}
	q.Inbound = r.At != "" && w.file.Workloads[name].Type == bootstrap.Sidecar
	q.Outbound = r.From != "" && w.file.Workloads[name].Type == bootstrap.Sidecar
	for _, key := range sortedKeys(r.Headers) {
		q.Header = append(q.Header, key+": "+r.Headers[key])
	}
	conn, request, err := q.Ask(w.configs[name], w.nodes[name], r.URL)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	walks := []Walk{{name, w.configs[name].Walk(conn, request)}}
	if q.Inbound || walks[0].Outcome.Verdict != simulator.Forwarded {
		return walks, nil
	}
	seen := map[string]bool{}
	for _, s := range walks[0].Outcome.Upstream.Clusters {
		for _, e := range s.Endpoints {
			if to, ok := w.behind(e); ok && !seen[e.Address+s.Cluster] {
				seen[e.Address+s.Cluster] = true
				out, err := w.onward(name, to, conn, s, e)
				if err != nil {
					return nil, err
				}
				walks = append(walks, Walk{to, out})
			}
		}
	}
	return walks, nil
}

// behind names the workload with a sidecar that an endpoint is.
func (w *world) behind(e simulator.Endpoint) (string, bool) {
	a, err := netip.ParseAddrPort(e.Address)
	if err != nil {
		return "", false
	}
	name := w.at[a.Addr()]
	return name, name != "" && w.file.Workloads[name].Type == bootstrap.Sidecar
}

// inbound is the port to which a sidecar's rules redirect what comes in.
const inbound = 15006

// onward walks through the proxy of an endpoint.
func (w *world) onward(from, to string, conn simulator.Connection, s simulator.Share, e simulator.Endpoint) (*simulator.Outcome, error) {
	source := netip.AddrPortFrom(netip.MustParseAddr(w.file.Workloads[from].IP), conn.Source.Port())
	next, err := e.Onward(source, conn.Protocol, w.identity(from))
	if err != nil {
		return nil, err
	}
	if e.TLS != nil {
		if err := e.TLS.Trusts(w.identity(to)); err != nil {
			return &simulator.Outcome{Verdict: simulator.Closed, Reason: err.Error()}, nil
		}
	}
	next.Intercepted = inbound
	return w.configs[to].Walk(next, s.Request), nil
}

// identity is what the certificate of a workload names.
func (w *world) identity(name string) simulator.Identity {
	of := w.file.Workloads[name]
	return simulator.Identity{URIs: []string{istio.AccountIdentity(of.account(), of.namespace(), w.file.TrustDomain)}}
}
