package sdk_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// sized is a row of so many bytes.
func sized(key string, bytes int) *sdk.Row {
	r := &sdk.Row{Key: key, Payload: make([]byte, max(0, bytes-64))}
	for r.Size() < bytes {
		r.Payload = append(r.Payload, 1)
	}
	return r
}

// publishing runs a source that publishes what it is given.
func publishing(t *testing.T) (h *plugintest.Harness, update func(upserts []*sdk.Row, deletes ...string)) {
	t.Helper()
	out := make(chan sdk.Publisher, 1)
	h = plugintest.Start(t, sdk.ConfigSourcePlugin{
		Name: "p", Version: "1", Publishes: []string{"things"},
		New: sdk.WithoutConfig(func() (sdk.ConfigSource, error) {
			return sdk.ConfigSourceFunc(func(ctx context.Context, p sdk.Publisher) error {
				out <- p
				<-ctx.Done()
				return nil
			}), nil
		}),
	}, nil)
	p := <-out
	return h, func(upserts []*sdk.Row, deletes ...string) {
		t.Helper()
		if err := p.Update("things", upserts, deletes); err != nil {
			t.Errorf("an update fails as a whole: %v", err)
		}
	}
}

// aboutRow waits until a fault was told of a row of things.
func aboutRow(h *plugintest.Harness, key string, seen int) *pb.Fault {
	for _, f := range h.Faults()[seen:] {
		if f.What == "row "+key+" of table things" && len(f.Rows) == 1 && f.Rows[0].Key == key {
			return f
		}
	}
	return nil
}

// A row that is too large fails alone: the others of its update are there, what was published of it
// before stays, it is logged and told as a fault until it is published as it can be, or goes.
func TestLargeRowOfASource(t *testing.T) {
	h, update := publishing(t)
	update([]*sdk.Row{sized("large", 100)})
	h.WaitRows("things", func(rows map[string]*sdk.Row) bool { return len(rows) == 1 })
	update([]*sdk.Row{sized("a", 100), sized("large", session.MaxRow+1), sized("b", session.MaxRow)})
	h.WaitRows("things", func(rows map[string]*sdk.Row) bool { return rows["a"] != nil && rows["b"] != nil })
	h.WaitLog(func(l sdk.Level, text string, fields map[string]string) bool {
		return l == sdk.Error && fields["row"] == "large" && fields["table"] == "things" && strings.Contains(fields["reason"], "1032193 bytes")
	})
	if n := h.Rows("things")["large"].Size(); n != 100 {
		t.Errorf("what was published before has %d bytes", n)
	}
	if f := aboutRow(h, "large", 0); f == nil || !strings.Contains(f.Reason, "limits.rowBytes") {
		t.Errorf("the fault is %v", f)
	}
	// Another fault tells of both; one that is mended, of the other alone.
	seen := len(h.Faults())
	update([]*sdk.Row{sized("more", 3<<20)})
	h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool { return fields["row"] == "more" })
	update([]*sdk.Row{sized("large", 200)})
	update([]*sdk.Row{sized("last", 100)}, strings.Repeat("k", 2<<20))
	h.WaitRows("things", func(rows map[string]*sdk.Row) bool { return rows["last"] != nil && rows["large"].Size() == 200 })
	if aboutRow(h, "large", seen) == nil || aboutRow(h, "more", seen) == nil {
		t.Errorf("the faults are %v", h.Faults()[seen:])
	}
	if aboutRow(h, "large", len(h.Faults())-1) != nil || aboutRow(h, "more", len(h.Faults())-1) == nil {
		t.Errorf("in the end the fault is %v", h.Faults()[len(h.Faults())-1])
	}
	seen = len(h.Faults())
	update([]*sdk.Row{sized("end", 100)}, "more")
	h.WaitRows("things", func(rows map[string]*sdk.Row) bool { return rows["end"] != nil })
	if n := len(h.Faults()) - seen; n > 0 {
		t.Errorf("%d faults of what is gone", n)
	}
}

// A deriver's rows that are too large are faults of each revision until they are not, and the rest
// of the revision counts.
func TestLargeRowOfADeriver(t *testing.T) {
	h := plugintest.Start(t, sdk.DeriverPlugin{
		Name: "d", Version: "1", Reads: []string{"services"}, Publishes: []string{"things"},
		New: sdk.WithoutConfig(func() (sdk.Deriver, error) {
			return sdk.DeriverFunc(func(_ context.Context, change *state.Change, out sdk.Publisher) error {
				var rows []*sdk.Row
				for _, key := range change.Keys["services"] {
					size := 100
					if string(change.State.Row("services", key).Payload) == "large" {
						size = 2 << 20
					}
					rows = append(rows, sized(key, size))
				}
				return out.Update("things", rows, nil)
			}), nil
		}),
	}, nil)
	h.Update("services", []*sdk.Row{{Key: "a"}, {Key: "b", Payload: []byte("large")}, {Key: "c"}})
	if rows := h.Rows("things"); len(rows) != 2 || rows["b"] != nil {
		t.Errorf("%d rows", len(rows))
	}
	if aboutRow(h, "b", 0) == nil {
		t.Errorf("the faults are %v", h.Faults())
	}
	seen := len(h.Faults())
	h.Update("services", []*sdk.Row{{Key: "d"}})
	if aboutRow(h, "b", seen) == nil || h.Rows("things")["d"] == nil {
		t.Error("the next revision has forgotten it")
	}
	seen = len(h.Faults())
	h.Update("services", []*sdk.Row{{Key: "b"}})
	if len(h.Faults()) != seen || h.Rows("things")["b"] == nil {
		t.Error("it isn't over")
	}
}

// A name that no message has room for is left out alone, and large bodies are sent in pieces.
func TestLargeNamesAndBodies(t *testing.T) {
	long := strings.Repeat("n", session.MaxMessage)
	generate := func(*state.State, string, string, []string) ([]sdk.Resource, error) {
		return []sdk.Resource{{Name: "a", Body: []byte("a")}, {Name: long, Body: []byte("b")}, {Name: "c", Body: bytes.Repeat([]byte("c"), 3<<20)}}, nil
	}
	h := plugintest.Start(t, sdk.GeneratorPlugin{
		Name: "g", Version: "1", Reads: []string{"services"}, Types: []sdk.Type{{Url: clusters}},
		New: sdk.WithoutConfig(func() (sdk.Generator, error) { return sdk.GeneratorFuncs{GenerateFunc: generate}, nil }),
	}, nil)
	h.Commit(plugintest.Rows{Table: "services", Upserts: []*sdk.Row{{Key: "a"}}})
	p := &sdk.Proxy{Types: []string{clusters}}
	h.Attach(p)
	got := h.Resources(p.Connection, clusters)
	if len(got) != 2 || string(got["a"]) != "a" || len(got["c"]) != 3<<20 {
		t.Errorf("%d resources, one of %d bytes", len(got), len(got["c"]))
	}
	if !slices.ContainsFunc(h.Faults(), func(f *pb.Fault) bool {
		return strings.HasPrefix(f.What, "resource nnn") && len(f.What) < 2000 && strings.Contains(f.Reason, "its name has 1048576 characters")
	}) {
		t.Errorf("%d faults, and none says so", len(h.Faults()))
	}
}

// An answer that is too large is an error of its question, and nothing else.
func TestLargeAnswers(t *testing.T) {
	rows := make([]state.Name, 500)
	for i := range rows {
		rows[i] = state.Name{Table: "services", Key: strings.Repeat("k", 4096)}
	}
	generate := func(*state.State, string, string, []string) ([]sdk.Resource, error) {
		return []sdk.Resource{{Name: "a", Body: []byte("a"), From: rows}}, nil
	}
	h := plugintest.Start(t, sdk.GeneratorPlugin{
		Name: "g", Version: "1", Reads: []string{"services"}, Types: []sdk.Type{{Url: clusters}},
		New: sdk.WithoutConfig(func() (sdk.Generator, error) { return sdk.GeneratorFuncs{GenerateFunc: generate}, nil }),
	}, nil)
	h.Commit(plugintest.Rows{Table: "services", Upserts: []*sdk.Row{{Key: "a"}}})
	p := &sdk.Proxy{Types: []string{clusters}}
	view := h.Attach(p)[clusters]
	h.Resources(p.Connection, clusters)
	if b := h.Explain(clusters, view, "a"); !strings.Contains(b.Error, "too large") || len(b.Rows) > 0 {
		t.Errorf("%d rows, %q", len(b.Rows), b.Error)
	}
	h.WaitLog(func(l sdk.Level, _ string, fields map[string]string) bool {
		return l == sdk.Error && fields["answer"] == "Because"
	})

	a := plugintest.Start(t, sdk.AuthenticatorPlugin{
		Name: "a", Version: "1",
		New: sdk.WithoutConfig(func() (sdk.Authenticator, error) {
			return sdk.AuthenticatorFunc(func(_ context.Context, shown sdk.Credentials) ([]string, error) {
				if shown.RemoteAddress == "large" {
					return []string{strings.Repeat("i", 2<<20)}, nil
				}
				return []string{"somebody"}, nil
			}), nil
		}),
	}, nil)
	if c := a.Authenticate(sdk.Credentials{RemoteAddress: "large"}); len(c.Identities) > 0 || !strings.Contains(c.Refusal, "too large") {
		t.Errorf("%d identities, %q", len(c.Identities), c.Refusal)
	}
	if c := a.Authenticate(sdk.Credentials{}); len(c.Identities) != 1 {
		t.Error("the next is not answered")
	}
}
