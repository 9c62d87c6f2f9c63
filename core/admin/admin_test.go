package admin

import (
	"context"
	"encoding/json"
	"errors"
	"github.com/coxswain-mesh/coxswain/core/caller"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// twin is a Source with a bit of everything.
type twin struct{ reasons []string }

func (s twin) Ready() []string    { return s.reasons }
func (s twin) Revision() Revision { return Revision{Epoch: 7, Number: 3} }
func (s twin) Plugins() []Plugin {
	return []Plugin{{Name: "files", Kind: "config", State: "serving", Rows: 2,
		Faults: []WorkFault{{
			What: "cluster x", Reason: "Envoy would refuse it",
			Rows: []RowName{{Table: "networking.istio.io/EnvoyFilter", Key: "a/ef"}}, Since: time.Unix(1, 0),
		}},
		Held: &Hold{Rows: 1, Names: []RowName{{Table: "networking.istio.io/Sidecar", Key: "a/sc"}}}}}
}
func (s twin) Views() []View {
	return []View{{Type: typeURL("rds"), ID: 2, Label: "ns a"}, {Type: typeURL("cds"), ID: 1, Label: "all"}}
}
func (s twin) Streams() []Stream {
	return []Stream{{Connection: 2, Node: "b"}, {Connection: 1, Node: "a", Types: map[string]StreamType{typeURL("cds"): {Wildcard: true, Acked: "v"}}}}
}
func (s twin) Tables() []Table {
	return []Table{{Name: "services", Shards: map[string]int{"se": 1}}, {Name: "networking.istio.io/Gateway", Shards: map[string]int{"files": 1}},
		{Name: "networking.istio.io/EnvoyFilter", Shards: map[string]int{"files": 1}},
		{Name: "networking.istio.io/Sidecar", Shards: map[string]int{"files": 1}},
		{Name: "example.com/Account", Shards: map[string]int{"others": 1}}}
}
func (s twin) SecretTable(name string) bool { return name == "example.com/Account" }
func (s twin) Rows(table string) []*pb.Row {
	switch table {
	case "services":
		m := &pb.Service{Host: "web.example", Namespace: "a"}
		return []*pb.Row{{Key: "a/web.example", Shard: "se", Payload: m.AppendTo(nil)}}
	case "endpoints":
		m := &pb.Endpoint{Host: "web.example", Namespace: "a", Address: "10.0.0.1", Port: 80}
		return []*pb.Row{{Key: "1", Shard: "se", Payload: m.AppendTo(nil)}}
	case "networking.istio.io/Gateway":
		return []*pb.Row{{Key: "a/gw", Shard: "files", Source: "gw.yaml:1:1"}}
	case "networking.istio.io/EnvoyFilter":
		return []*pb.Row{{Key: "a/ef", Shard: "files", Source: "ef.yaml:1:1"}}
	case "networking.istio.io/Sidecar":
		return []*pb.Row{{Key: "a/sc", Shard: "files", Source: "sc.yaml:1:1"}}
	case "example.com/Account":
		return []*pb.Row{{Key: "a/account", Shard: "others", Payload: []byte("hush"), Annotations: map[string]string{"applied": "hush"}}}
	case "faults":
		return []*pb.Row{
			{Key: "gw.yaml:3:1", Shard: "files", Payload: []byte(`{"file":"gw.yaml","line":3,"column":1,` +
				`"kind":"Gateway","namespace":"a","name":"gw","code":"COX1003","severity":"error","message":"unknown field"}`)},
			{Key: "x.yaml:1:1", Shard: "files", Payload: []byte(`{"file":"x.yaml","line":1,"column":1,"severity":"warning","message":"odd"}`)},
		}
	}
	return nil
}

func (twin) Proxy(node string) (Proxy, bool) {
	return Proxy{Node: node, Types: []report.ProxyType{{Type: typeURL("cds"), Plugin: "istio", Names: []report.NamedState{{Name: "c", Version: "1"}}}}},
		node == "a"
}

func (twin) Explain(_ context.Context, node, typeURL, name string) (Explanation, error) {
	if node != "a" || name != "c" {
		return Explanation{}, errors.New("it has none")
	}
	return Explanation{
		Node: node, Type: typeURL, Name: name, Plugin: "istio",
		Rows: []Origin{{RowName: RowName{Table: "mesh", Key: "mesh"}, Source: "mesh.yaml:1:1"}},
	}, nil
}

func (twin) Impact(_ context.Context, row RowName) Impact { return Impact{Row: Origin{RowName: row}} }

func (twin) Effects(context.Context) Effects {
	return Effects{Proxies: 1, Asked: 1, Rows: []Effect{{RowName: RowName{Table: "networking.istio.io/Gateway", Key: "a/gw"}, Resources: 2, Proxies: 1}}}
}

func (twin) Derivations() map[RowName]RowName { return nil }

func (twin) Progress(row RowName) (Progress, error) {
	return Progress{Row: Origin{RowName: row}, Served: 7}, nil
}

func (twin) Pushes(after uint64) ([]Push, error) {
	if after >= 7 {
		return []Push{}, nil
	}
	return []Push{{Revision: 7, Kind: "full"}}, nil
}

func (twin) Refusals() []Refusal {
	return []Refusal{{
		Type: typeURL("lds"), Name: "in", Plugin: "istio", Reason: "no such filter", Held: true,
		Namespaces: []string{"shop"}, Votes: 2, Voters: 2, Instead: "0", Refusing: 2, Proxies: []string{"a"},
		View: report.PlacedView{Label: "one", Connections: 2}, Rows: []RowName{{Table: "networking.istio.io/EnvoyFilter", Key: "a/ef"}},
	}}
}

func (twin) History() History {
	return History{Revisions: []Kept{{Push: Push{Revision: 7}, Kept: true}}}
}

func (twin) Diff(from, to uint64, node string) (Difference, error) {
	if from != 6 || node == "b" {
		return Difference{}, errors.New("revision 1 is not kept any more")
	}
	return Difference{From: from, To: to}, nil
}

func (twin) Pins() []Pin {
	return []Pin{{Revision: 6, Proxies: "id=a", Pinned: []PinnedProxy{{Node: "a"}}}}
}

func (twin) Rollout() Rollout {
	return Rollout{Stage: report.Stage{State: report.Staged, Base: 6}, Held: []PinnedProxy{{Node: "a"}}}
}

func (twin) Plans() Plans {
	return Plans{
		Making: []Plan{{ID: 2, Command: "coxswain plugins plan FILE", By: "ann", State: report.PlanWaiting, Steps: []report.PlanStep{}}},
		Ended: []Plan{{ID: 1, Command: "coxswain plugins swap istio --dry-run", By: "ann", State: report.PlanDone, Of: 1, Steps: []report.PlanStep{{
			Plugin: "istio", What: "swap", State: "compared", Summary: "+1 Cluster", Notes: []string{planted + " password=hunter2"},
			Difference: &guard.Difference{Types: []guard.TypeDifference{{Type: typeURL("cds"), Counts: guard.Counts{Added: 1}, Proxies: 3}}},
		}}}},
	}
}

func (twin) Planning() (making int, moves uint64) { return 1, 5 }

func (twin) Ledger(node string) []xds.StreamLedger {
	if node != "a" {
		return nil
	}
	return []xds.StreamLedger{{Node: node, Types: []xds.TypeLedger{{Type: typeURL("cds"), Resources: []xds.ResourceStatus{{Name: "c", State: xds.Acked}}}}}}
}

func (twin) Streamed() []xds.StreamStatus {
	return []xds.StreamStatus{{Node: "a", Types: []xds.TypeStatus{
		{Type: typeURL("cds"), Sent: "n1", Acked: "n1"}, {Type: typeURL("eds"), Sent: "n2", Refused: "no"},
		{Type: typeURL("rds")}, {Type: typeURL("lds"), Sent: "n3", Acked: "n3"},
	}}}
}

func (s twin) Dump(node string) ([]TypeDump, bool) {
	if node != "a" {
		return nil, false
	}
	strange := &anypb.Any{TypeUrl: prefix + "example.Unknown", Value: []byte{8, 1}}
	l := &listenerv3.Listener{Name: "in", FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
		Name: "strange", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: strange}}}}}}
	value, _ := proto.Marshal(l)
	return []TypeDump{
		{Type: typeURL("lds"), Bodies: []*view.Body{view.NewBody(typeURL("lds"), "in", value, 0)}},
		{Type: typeURL("sds"), Sensitive: true, Bodies: []*view.Body{view.NewBody(typeURL("sds"), "key", []byte("hush"), 0)}},
	}, true
}

func start(t *testing.T, s Source) *Server {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "one"}, func() float64 { return 1 }))
	a, err := New(Config{
		Source: s, Registry: r, Version: "v1.2.3", Log: slog.New(slog.DiscardHandler),
		Naming: caller.Naming{NamespaceOf: func(*corev3.Node) string { return "shop" }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// here is a request from this machine.
func here(path string) *http.Request {
	r := httptest.NewRequest("GET", "http://localhost"+path, nil)
	r.RemoteAddr = "127.0.0.1:4000"
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}))
}

func TestPages(t *testing.T) {
	a := start(t, twin{})
	for path, want := range map[string][]string{
		"/ready":                {"ready"},
		"/debug":                {"/debug/streams"},
		"/debug/list":           {`"configs"`},
		"/debug/plugins":        {`"files"`, `"serving"`},
		"/debug/plans":          {`"by": "ann"`, `"waiting"`, `"+1 Cluster"`, `"proxies": 3`, "password=[redacted]"},
		"/debug/views?type=cds": {`"all"`},
		"/debug/streams":        {`"epoch": 7`, `"wildcard": true`},
		"/debug/services":       {`"host": "web.example"`, `"plugin": "se"`},
		"/debug/endpoints":      {`"Shards"`, `"10.0.0.1"`},
		"/debug/configs": {
			`"kind": "Gateway"`, `"source": "gw.yaml:1:1"`, `"state": "refused"`, `"served": true`,
			`"message": "unknown field"`, `"state": "warned"`, `"served": false`,
			`"state": "held"`, `"message": "cluster x: Envoy would refuse it"`,
			`"message": "Listener in is refused by 2 of the 2 proxies of view one, such as a: no such filter"`,
			`"since": "1970-01-01`, `"a/account"`,
		},
		"/debug/explain?proxyID=a":                          {`"resources"`, `"plugin": "istio"`},
		"/debug/explain?proxyID=a&type=cds&name=c":          {`"type": "type.googleapis.com/envoy.config.cluster.v3.Cluster"`, `"source": "mesh.yaml:1:1"`},
		"/debug/impact?row=gateways/a/gw":                   {`"table": "networking.istio.io/Gateway"`, `"key": "a/gw"`},
		"/debug/progress?row=networking.istio.io/Gateway/x": {`"table": "networking.istio.io/Gateway"`, `"key": "x"`, `"served": 7`},
		"/debug/pushes":                                     {`"revision": 7`},
		"/debug/effects":                                    {`"resources": 2`},
		"/debug/pushes?after=7":                             {`[]`},
		"/debug/ledger":                                     {`"staged": true`, `"state": "held"`, `"state": "refused"`, `"state": "not sent"`, `"held": [`},
		"/debug/history":                                    {`"kept": true`},
		"/debug/diff?from=6&to=7":                           {`"from": 6`, `"to": 7`},
		"/debug/pins":                                       {`"proxies": "id=a"`},
		"/debug/rollout":                                    {`"state": "staged"`, `"base": 6`, `"node": "a"`},
		"/debug/ledger?proxyID=a":                           {`"state": "acked"`},
		"/debug/refusals":                                   {`"refusing": 2`, `"reason": "no such filter"`},
		"/debug/tables":                                     {`"services"`, `"secret": true`},
		"/debug/rowz?table=networking.istio.io/Gateway":     {`"key": "a/gw"`, `"payload"`},
		"/debug/config_dump?proxyID=a": {
			"ListenersConfigDump", "BootstrapConfigDump", "RoutesConfigDump", `"strange"`, `"redacted": true`,
		},
		"/debug/config_dump?proxyID=a&types=lds": {"dynamic_listeners", "active_state"},
	} {
		w := httptest.NewRecorder()
		a.HTTP().ServeHTTP(w, here(path))
		if w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		for _, part := range want {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s: no %s in\n%s", path, part, w.Body)
			}
		}
		if strings.HasPrefix(path, "/debug/") && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: not JSON", path)
		}
		if strings.Contains(w.Body.String(), "hush") || strings.Contains(w.Body.String(), "aHVzaA") {
			t.Errorf("%s shows a secret", path)
		}
	}
}

// objectsOf are the objects that /debug/configs shows of a source.
func objectsOf(t *testing.T, s Source) (all []Object) {
	t.Helper()
	w := httptest.NewRecorder()
	start(t, s).HTTP().ServeHTTP(w, here("/debug/configs"))
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestHeldObjects: an object that stays only because what its source says now is held is marked,
// with where to see more.
func TestHeldObjects(t *testing.T) {
	all := objectsOf(t, twin{})
	i := slices.IndexFunc(all, func(o Object) bool { return o.Kind == "Sidecar" })
	if i < 0 {
		t.Fatalf("it is not among %+v", all)
	}
	if o := all[i]; o.State != "held" || !o.Served || len(o.Faults) != 1 || !strings.Contains(o.Faults[0].Hint, "coxswain hold show files") {
		t.Errorf("%+v", o)
	}
}

// plainTwin is a twin of which proxies refuse something that speak for themselves alone.
type plainTwin struct{ twin }

func (plainTwin) Plugins() []Plugin { return nil }

func (plainTwin) Refusals() []Refusal {
	r := Refusal{Type: typeURL("lds"), Name: "in", Refusing: 1, Rows: []RowName{{Table: "networking.istio.io/EnvoyFilter", Key: "a/ef"}}}
	more := r
	more.Name, more.Refusing = "out", 3
	return []Refusal{r, more, r}
}

// TestRefusedApart: an object of which proxies refuse something, each for itself alone, says that
// some do, and how many; its state is not that of what is held.
func TestRefusedApart(t *testing.T) {
	all := objectsOf(t, plainTwin{})
	i := slices.IndexFunc(all, func(o Object) bool { return o.Kind == "EnvoyFilter" && o.Key == "a/ef" })
	if i < 0 {
		t.Fatalf("it is not among %+v", all)
	}
	if o := all[i]; o.State != "refused by proxies" || o.Refusing != 3 || !o.Served {
		t.Errorf("%+v", o)
	}
	for _, o := range all {
		if o.Kind != "EnvoyFilter" && o.Refusing > 0 {
			t.Errorf("%+v", o)
		}
	}
}

// TestRowOfTwoTables: where several tables are of a kind, the one that has the row is meant.
func TestRowOfTwoTables(t *testing.T) {
	const one, other = "networking.istio.io/Gateway", "gateway.networking.k8s.io/Gateway"
	tables := []Table{{Name: one}, {Name: other}}
	for want, has := range map[string][]string{one: {one}, other: {other}, "": {one, other}} {
		got, err := RowNamed(tables, "Gateway/shop/edge", func(n RowName) bool { return n.Key == "shop/edge" && slices.Contains(has, n.Table) })
		if got.Table != want || want != "" && err != nil || want == "" && !strings.Contains(err.Error(), one+"/… or "+other) {
			t.Errorf("%v have it: %v, %v", has, got, err)
		}
	}
	if _, err := RowNamed(tables, "Gateway/shop/edge", func(RowName) bool { return false }); err == nil {
		t.Error("a row that nobody has is of one of two tables")
	}
}

func TestAnswersThatHelp(t *testing.T) {
	a := start(t, twin{reasons: []string{"plugin files: syncing"}})
	for _, c := range []struct {
		path, accept string
		code         int
		want         string
	}{
		{"/ready", "", 503, "plugin files: syncing\n"},
		{"/ready", "application/json", 503, `{"ready":false,"reasons":["plugin files: syncing"]}`},
		{"/debug/config_dump", "", 400, "proxyID"},
		{"/debug/rowz?table=services", "", 400, "?table=GROUP/KIND, mesh or networks is wanted"},
		{"/debug/rowz?table=example.com/Account", "", 403, "the rows of example.com/Account are secrets"},
		{"/debug/config_dump?proxyID=x", "", 404, "not connected"},
		{"/debug/nothing", "", 404, ""},
		{"/debug/metrics", "", 200, "one 1"},
		{"/debug/version", "", 200, "v1.2.3"},
		{"/debug/explain", "", 400, "proxyID"},
		{"/debug/explain?proxyID=x", "", 404, "not connected"},
		{"/debug/explain?proxyID=a&type=cds&name=x", "", 404, "it has none"},
		{"/debug/impact?row=gateway", "", 400, "KIND/NAMESPACE/NAME is wanted"},
		{"/debug/impact?row=Gatway/a/gw", "", 400, `no table has rows of kind "Gatway"; there are Account, `},
		{"/debug/pushes?after=x", "", 400, "number of a revision"},
		{"/debug/diff?from=1&to=7", "", 404, "revision 1 is not kept any more"},
		{"/debug/diff?from=6&to=", "", 400, "number of a revision"},
		{"/debug/diff", "", 400, "number of a revision"},
		{"/debug/ledger?proxyID=x", "", 404, "not connected"},
	} {
		r := here(c.path)
		r.Header.Set("Accept", c.accept)
		w := httptest.NewRecorder()
		a.HTTP().ServeHTTP(w, r)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %q, want %d %q", c.path, w.Code, w.Body, c.code, c.want)
		}
	}
}

func TestMonitoring(t *testing.T) {
	a := start(t, twin{})
	for path, want := range map[string]string{"/metrics": "one 1", "/version": "v1.2.3", "/debug/plugins": "files"} {
		w := httptest.NewRecorder()
		a.Monitoring().ServeHTTP(w, here(path))
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestRun(t *testing.T) {
	defer wait.Ended(t)
	ports := make(chan net.Addr, 2)
	a, err := New(Config{
		HTTPAddr: "127.0.0.1:0", MonitoringAddr: "127.0.0.1:0", Source: twin{}, Registry: prometheus.NewRegistry(),
		Log: slog.New(slog.DiscardHandler), Listening: func(_ string, addr net.Addr) { ports <- addr },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	if err := a.Open(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- a.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 2 {
		resp, err := client.Get("http://" + (<-ports).String() + "/debug/list")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRunSaysWhichPort(t *testing.T) {
	defer wait.Ended(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := New(Config{
		HTTPAddr: "127.0.0.1:0", MonitoringAddr: l.Addr().String(), Source: twin{},
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "monitoring port") {
		t.Errorf("got %v", err)
	}
}
