package istio

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/serving"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// recorder is the core as an engine sees it: it keeps what the engine reports.
type recorder struct {
	mu     sync.Mutex
	views  map[uint64]*recordedView
	parts  map[uint64]map[string][]byte
	placed map[uint64]map[string]uint64
	faults []string
	// blamed are the rows of each fault.
	blamed []string
	// reports counts resources that were reported.
	reports int
	// repeated are resources that were reported as they were.
	repeated []string
	// logged are lines of the log.
	logged []string
}

type recordedView struct {
	label string
	facts map[string]string
	parts []uint64
	own   map[string][]byte
}

func newRecorder() *recorder {
	return &recorder{views: map[uint64]*recordedView{}, parts: map[uint64]map[string][]byte{}, placed: map[uint64]map[string]uint64{}}
}

func (r *recorder) View(_ string, view uint64, label string, facts map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.views[view] = &recordedView{label: label, facts: facts, own: map[string][]byte{}}
}

func (r *recorder) Place(connection uint64, typeURL string, view uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.placed[connection] == nil {
		r.placed[connection] = map[string]uint64{}
	}
	r.placed[connection][typeURL] = view
}

func (r *recorder) Part(_ string, part uint64, upserts []sdk.Resource, removes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parts[part] == nil {
		r.parts[part] = map[string][]byte{}
	}
	r.apply(r.parts[part], upserts, removes)
}

func (r *recorder) Change(_ string, view uint64, parts []uint64, upserts []sdk.Resource, removes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.views[view]
	if v == nil {
		panic(fmt.Sprintf("view %d was changed and never described", view))
	}
	if parts != nil {
		v.parts = slices.Clone(parts)
	}
	r.apply(v.own, upserts, removes)
}

func (r *recorder) apply(to map[string][]byte, upserts []sdk.Resource, removes []string) {
	for _, u := range upserts {
		body := u.Body
		if u.Fields != nil {
			body = bytes.Join(u.Fields, nil)
		}
		if had, ok := to[u.Name]; ok && bytes.Equal(had, body) {
			r.repeated = append(r.repeated, u.Name)
		}
		to[u.Name] = body
		r.reports++
	}
	for _, n := range removes {
		delete(to, n)
	}
}

func (r *recorder) Progress() {}

func (r *recorder) Fault(what string, err error, read ...state.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, what+": "+err.Error())
	r.blamed = append(r.blamed, fmt.Sprint(read))
}

// since returns the faults, with their rows, that were reported since it was asked last.
func (r *recorder) since() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out string
	for i, f := range r.faults {
		out += f + " " + r.blamed[i] + "\n"
	}
	r.faults, r.blamed = nil, nil
	return out
}

func (r *recorder) Log(_ sdk.Level, text string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logged = append(r.logged, fmt.Sprint(text, " ", args))
}

// resources are those of a view by name.
func (r *recorder) resources(view uint64) map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string][]byte{}
	v := r.views[view]
	for _, p := range slices.Backward(v.parts) {
		maps.Copy(out, r.parts[p])
	}
	maps.Copy(out, v.own)
	return out
}

// world is an engine with its recorder and the state that it was given.
type world struct {
	t        testing.TB
	e        *serving.Engine
	out      *recorder
	builder  state.Builder
	revision uint64
}

func newWorld(t testing.TB) *world {
	return &world{t: t, e: newEngine(Config{Domain: "cluster.local"}), out: newRecorder(), revision: 10}
}

// commit gives the engine rows.
func (w *world) commit(tables ...*pb.TableRows) {
	w.t.Helper()
	w.revision++
	change, err := w.builder.Apply(&pb.State{Revision: &pb.Revision{Number: w.revision}, Whole: w.builder.State() == nil, Tables: tables})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.e.Commit(context.Background(), change, w.out); err != nil {
		w.t.Fatal(err)
	}
}

// overtake gives the engine endpoints on top of what it was given.
func (w *world) overtake(upserts []*pb.Row, deletes ...string) {
	w.t.Helper()
	w.revision++
	rows := []*pb.TableRows{{Table: state.Endpoints, Upserts: upserts, Deletes: deletes}}
	change := state.With(w.builder.State(), state.Revision{Number: w.revision}, rows)
	if err := w.e.Overtake(context.Background(), change, w.out); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) attach(connection uint64, p *sdk.Proxy) {
	w.t.Helper()
	p.Connection = connection
	p.Types = []string{encode.ClusterType, encode.EndpointType, encode.ListenerType, encode.RouteType, encode.ExtensionType, encode.NameTableType}
	if err := w.e.Attach(context.Background(), p, w.out); err != nil {
		w.t.Fatal(err)
	}
}

// get wants resources for a connection and returns them.
func (w *world) get(connection uint64, typeURL string, names ...string) map[string][]byte {
	w.t.Helper()
	view := w.out.placed[connection][typeURL]
	if err := w.e.Want(context.Background(), typeURL, view, names, w.out); err != nil {
		w.t.Fatal(err)
	}
	return w.out.resources(view)
}

// proxy is a sidecar or router without more than its id and some metadata.
func proxy(id string, extensions []string, metadata map[string]any) *sdk.Proxy {
	s, err := structpb.NewStruct(metadata)
	if err != nil {
		panic(err)
	}
	node, err := proto.Marshal(&core.Node{Id: id, Metadata: s})
	if err != nil {
		panic(err)
	}
	return &sdk.Proxy{Node: node, Extensions: extensions}
}

const sidecarID = "sidecar~10.9.9.9~client.default~default.svc.cluster.local"

func rows(table string, upserts ...*pb.Row) *pb.TableRows {
	return &pb.TableRows{Table: table, Upserts: upserts}
}

func resource(key string, spec proto.Message) *pb.Row {
	b, err := kinds.Encode(spec)
	if err != nil {
		panic(err)
	}
	return &pb.Row{Key: key, Payload: b}
}

// web is a service with one HTTP port and endpoints at these addresses.
func web(addresses ...string) []*pb.TableRows {
	s := &sdk.Service{Host: "web.default.svc.cluster.local", Namespace: "default", Name: "web", Addresses: []string{"10.96.0.1"},
		Ports: []*sdk.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}}
	out := []*pb.TableRows{rows(state.Services, sdk.ServiceRow(s))}
	for _, a := range addresses {
		out = append(out, rows(state.Endpoints, webEndpoint(a)))
	}
	return out
}

func webEndpoint(address string) *pb.Row {
	return sdk.EndpointRow(&sdk.Endpoint{Host: "web.default.svc.cluster.local", Namespace: "default", PortName: "http", ServicePort: 80,
		Address: address, Port: 8080, Labels: map[string]string{"app": "web"}, ServiceAccount: "web", TlsMode: "istio"})
}

const webCluster = "outbound|80||web.default.svc.cluster.local"
