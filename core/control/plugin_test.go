package control

import (
	"context"
	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/view"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Types that this binary has no messages for: contents are plain text in these tests.
const (
	typeA = "type.googleapis.com/test.A"
	// typeC is one whose resources are held where most proxies refuse them.
	typeC = pieces.Cluster
	typeB = "type.googleapis.com/test.B"
	typeT = "type.googleapis.com/test.T"
)

// plugin is the other side of a session, played by a test.
type plugin struct {
	t    *testing.T
	link *carrier.Plugin
	got  []*pb.FromCore
	end  chan error
	stop context.CancelFunc
}

// bench is a Control with its clock running. It must be made in a synctest bubble.
type bench struct {
	t *testing.T
	*Control
	// counted is where metrics go.
	counted *relay
}

// relay is Metrics that may be exchanged.
type relay struct{ state.Metrics }

func newBench(t *testing.T, edit func(*Config), plugins ...state.Expected) *bench {
	t.Helper()
	for i := range plugins {
		plugins[i].Order = i
	}
	cfg := Config{
		Plugins: plugins,
		Rules:   state.Rules{Choose: func(_ string, _ *corev3.Node, _ bool, offering []string) string { return offering[0] }},
		Timing: revision.Timing{
			DebounceAfter: 100 * time.Millisecond, DebounceMax: time.Second,
			EndpointPatience: 200 * time.Millisecond, HoldMax: 10 * time.Second,
		},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Metrics: state.NoMetrics{}, Naming: naming,
	}
	if edit != nil {
		edit(&cfg)
	}
	counted := &relay{cfg.Metrics}
	cfg.Metrics = counted
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &bench{t, c, counted}
}

// join begins a session of a declared plugin.
func (b *bench) join(name string, ready *pb.Ready) *plugin {
	b.t.Helper()
	return b.begin(&host.Instance{Entry: &manifest.Entry{Name: name}, Ready: ready})
}

// candidate begins a session beside the one that is served.
func (b *bench) candidate(name string, ready *pb.Ready) *plugin {
	b.t.Helper()
	return b.begin(&host.Instance{Entry: &manifest.Entry{Name: name}, Ready: ready, Candidate: true})
}

func (b *bench) begin(inst *host.Instance) *plugin {
	b.t.Helper()
	a, z := carrier.Pipe()
	p := &plugin{t: b.t, link: carrier.NewPlugin(z), end: make(chan error, 1)}
	inst.Ready.Kind, inst.Link = b.mid.State.Roster.Plugins[inst.Entry.Name].Kind(), carrier.NewCore(a)
	ctx, cancel := context.WithCancel(b.t.Context())
	p.stop = cancel
	go func() {
		p.end <- b.Serve(ctx, inst)
	}()
	b.t.Cleanup(func() {
		cancel()
		p.link.Close()
	})
	synctest.Wait()
	return p
}

// take returns what the core has sent by now.
func (p *plugin) take() []*pb.FromCore {
	synctest.Wait()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Nanosecond)
	defer cancel()
	var all []*pb.FromCore
	for {
		m, cost, err := p.link.Recv(ctx)
		if err != nil {
			return all
		}
		p.link.Release(cost)
		all = append(all, m)
		ctx, cancel = context.WithTimeout(p.t.Context(), time.Nanosecond)
		defer cancel()
	}
}

// state returns the newest State among what was sent; nil if there was none. Other messages are
// kept in p.got.
func (p *plugin) state() *pb.State {
	p.t.Helper()
	var last *pb.State
	for _, m := range p.take() {
		if m.State != nil {
			last = m.State
		} else {
			p.got = append(p.got, m)
		}
	}
	return last
}

// others returns what was sent besides State, since the last call.
func (p *plugin) others() []*pb.FromCore {
	p.t.Helper()
	if s := p.state(); s != nil {
		p.t.Fatalf("unexpected State of revision %d", s.Revision.Number)
	}
	out := p.got
	p.got = nil
	return out
}

func (p *plugin) send(ms ...*pb.FromPlugin) {
	p.t.Helper()
	for _, m := range ms {
		if err := p.link.Send(p.t.Context(), m); err != nil {
			p.t.Fatal(err)
		}
	}
	synctest.Wait()
}

func (p *plugin) rows(table string, rev *pb.Revision, rows ...*pb.Row) {
	p.t.Helper()
	p.send(&pb.FromPlugin{Rows: &pb.Rows{Revision: rev, Tables: []*pb.TableRows{{Table: table, Upserts: rows}}}})
}

func (p *plugin) synced() { p.send(&pb.FromPlugin{Synced: &pb.Synced{}}) }

func (p *plugin) done(rev *pb.Revision) { p.send(&pb.FromPlugin{Done: &pb.Done{Revision: rev}}) }

// kill ends the session as a crash does.
func (p *plugin) kill() error {
	p.link.Close()
	synctest.Wait()
	return <-p.end
}

func row(key, payload string) *pb.Row { return &pb.Row{Key: key, Payload: []byte(payload)} }

// keys returns "table key=payload" of all rows, and "table -key" of deletes.
func keys(s *pb.State) []string {
	var out []string
	if s == nil {
		return nil
	}
	for _, t := range s.Tables {
		for _, r := range t.Upserts {
			out = append(out, t.Table+" "+r.Key+"="+string(r.Payload))
		}
		for _, k := range t.Deletes {
			out = append(out, t.Table+" -"+k)
		}
	}
	slices.Sort(out)
	return out
}

// stream connects a proxy.
func (b *bench) stream(id string) *stream {
	b.t.Helper()
	return b.streamOf(peer(id))
}

func (b *bench) streamOf(p xds.Peer) *stream {
	b.t.Helper()
	s := &stream{t: b.t}
	conn, err := b.Connect(b.t.Context(), p, func(xds.Wake) { s.woken = true })
	if err != nil {
		b.t.Fatal(err)
	}
	s.Connection = conn
	b.t.Cleanup(conn.Close)
	return s
}

type stream struct {
	t *testing.T
	xds.Connection
	woken bool
}

// names returns "name=content" of the existing resources of a type; nil where nothing is known.
func (s *stream) names(typeURL string) []string {
	s.t.Helper()
	snap := s.Pull().Types[typeURL]
	if snap == nil {
		return nil
	}
	out := []string{}
	for _, b := range snap.Bodies() {
		out = append(out, b.Name()+"="+contentOf(b))
	}
	return out
}

// contentOf is what a resource says.
func contentOf(b *view.Body) string {
	var e corev3.TypedExtensionConfig
	text := &wrapperspb.StringValue{}
	if proto.Unmarshal(b.Value(), &e) == nil && e.TypedConfig.UnmarshalTo(text) == nil {
		return text.Value
	}
	var c clusterv3.Cluster
	if err := proto.Unmarshal(b.Value(), &c); err == nil && c.Name == b.Name() && c.Name != "" {
		return c.AltStatName
	}
	return string(b.Value())
}

// peer is a proxy with an identity of its own, of namespace shop.
func peer(id string) xds.Peer {
	return xds.Peer{Node: &corev3.Node{Id: id}, Identities: []string{"shop/" + id}}
}

// naming has identities that are NAMESPACE/NAME, of nodes that say nothing of theirs.
var naming = caller.Naming{
	Operators: "system",
	Namespaces: func(identities []string) (all []string) {
		for _, id := range identities {
			ns, _, _ := strings.Cut(id, "/")
			all = append(all, ns)
		}
		return all
	},
	NamespaceOf: func(*corev3.Node) string { return "" },
}
