package expectations

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/coxswain-mesh/coxswain/cmd/internal/bootstrap"
	"github.com/coxswain-mesh/coxswain/cmd/internal/plan"
	"github.com/coxswain-mesh/coxswain/cmd/internal/question"
	"github.com/coxswain-mesh/coxswain/cmd/internal/rules"
	"github.com/coxswain-mesh/coxswain/core/admin"
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
	// Live returns a debug page of a control plane that runs, or of a recording of one: then it is
	// that which is asked what proxies have, and no directory is served. nil: directories are.
	Live func(ctx context.Context, page string) ([]byte, error)
}

// world is the proxies through which requests go, by the names of their workloads.
type world struct {
	file    *File
	proxies map[string]*proxy
	at      map[netip.Addr]string
	// read returns what a proxy has of which that is not known yet.
	read func(*proxy) (*simulator.Config, error)
}

// proxy is one of a world.
type proxy struct {
	node      *corev3.Node
	sidecar   bool
	namespace string
	// identity is what its certificate names.
	identity simulator.Identity
	ip       netip.Addr
	config   *simulator.Config
}

func newWorld(f *File) *world {
	return &world{file: f, proxies: map[string]*proxy{}, at: map[netip.Addr]string{}}
}

// add notes a proxy by its name and addresses, but for those that another one has.
func (w *world) add(name string, p *proxy, others ...netip.Addr) {
	w.proxies[name] = p
	for _, a := range append(others, p.ip) {
		if w.at[a] == "" {
			w.at[a] = name
		}
	}
}

// config is what a proxy has.
func (w *world) config(name string) (c *simulator.Config, err error) {
	p := w.proxies[name]
	if p.config == nil {
		if p.config, err = w.read(p); err != nil {
			return nil, fmt.Errorf("the proxy of %s: %w", name, err)
		}
	}
	return p.config, nil
}

// Run plays a file's expectations. The error is about what could not be played.
func (r Runner) Run(ctx context.Context, f *File) (*Report, error) {
	if r.Live != nil {
		return r.runLive(ctx, f)
	}
	w := newWorld(f)
	names := sortedKeys(f.Workloads)
	proxies, err := w.ofFile(names)
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
		w.proxies[name].config = configs[i]
	}
	return w.report(objects, side.Dir, r.Only)
}

// report plays the expectations; objects are those of a directory, or of a control plane that runs.
func (w *world) report(objects []admin.Object, dir, only string) (report *Report, err error) {
	report = &Report{File: w.file.Path, Results: []Result{}}
	if report.Faults, err = plan.FaultsOf(objects, dir); err != nil {
		return nil, err
	}
	if err := w.play(report, only); err != nil {
		return nil, err
	}
	places := rules.Places{}
	for _, o := range objects {
		places.Add(o.Kind, o.Key, below(o.Source, dir), o.Of)
	}
	if only == "" {
		if report.Rules, err = w.rules(report.Results, objects, places); err != nil {
			return nil, err
		}
	}
	for _, r := range report.Results {
		for _, at := range r.Walks {
			places.Say(at.Outcome)
		}
	}
	return report, nil
}

// ofFile notes the proxies that the file says there are.
func (w *world) ofFile(names []string) (all []plan.Proxy, err error) {
	for _, name := range names {
		of := w.file.Workloads[name]
		if of.IP == "" {
			return nil, fmt.Errorf("%s: workloads.%s wants ip, its address", w.file.Path, name)
		}
		n, err := of.node(name)
		if err != nil {
			return nil, fmt.Errorf("%s: workloads.%s: %w", w.file.Path, name, err)
		}
		all = append(all, plan.Proxy{Node: n})
		w.add(name, &proxy{
			node: n, sidecar: of.Type == bootstrap.Sidecar, namespace: of.namespace(), ip: netip.MustParseAddr(of.IP),
			identity: identity(of.account(), of.namespace(), w.file.TrustDomain),
		})
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
	config, err := w.config(name)
	if err != nil {
		return nil, err
	}
	at := w.proxies[name]
	q := question.Question{To: r.To, From: r.Source, SNI: r.SNI, Peer: r.Peer, Method: r.Method}
	if q.Method == "" {
		q.Method = "GET"
	}
	q.Inbound, q.Outbound = r.At != "" && at.sidecar, r.From != "" && at.sidecar
	for _, key := range sortedKeys(r.Headers) {
		q.Header = append(q.Header, key+": "+r.Headers[key])
	}
	conn, request, err := q.Ask(config, at.node.Id, r.URL)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	walks := []Walk{{name, config.Walk(conn, request)}}
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
	return name, name != "" && w.proxies[name].sidecar
}

// inbound is the port to which a sidecar's rules redirect what comes in.
const inbound = 15006

// onward walks through the proxy of an endpoint.
func (w *world) onward(from, to string, conn simulator.Connection, s simulator.Share, e simulator.Endpoint) (*simulator.Outcome, error) {
	source := netip.AddrPortFrom(w.proxies[from].ip, conn.Source.Port())
	next, err := e.Onward(source, conn.Protocol, w.proxies[from].identity)
	if err != nil {
		return nil, err
	}
	if e.TLS != nil {
		if err := e.TLS.Trusts(w.proxies[to].identity); err != nil {
			return &simulator.Outcome{Verdict: simulator.Closed, Reason: err.Error()}, nil
		}
	}
	config, err := w.config(to)
	if err != nil {
		return nil, err
	}
	next.Intercepted = inbound
	return config.Walk(next, s.Request), nil
}

// identity is what the certificate of a service account's workloads names.
func identity(account, namespace, domain string) simulator.Identity {
	return simulator.Identity{URIs: []string{istio.AccountIdentity(account, namespace, domain)}}
}
