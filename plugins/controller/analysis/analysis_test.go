package analysis

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// server plays an API server's VirtualServices.
type server struct {
	t  *testing.T
	mu sync.Mutex
	// objects are texts by NAMESPACE/NAME; writes are the keys that were written, in order.
	objects map[string]string
	writes  []string
	// before is called before each request; what it returns is the answer.
	before func(*pb.Store) *pb.Stored
}

func newServer(t *testing.T, h *plugintest.Harness, objects map[string]string) *server {
	s := &server{t: t, objects: objects}
	h.OnStore(s.answer)
	return s
}

func (s *server) answer(m *pb.Store) *pb.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil {
		if a := s.before(m); a != nil {
			return a
		}
	}
	key := m.Namespace + "/" + m.Name
	switch {
	case m.Table != kinds.VirtualService && m.Verb == pb.VerbList:
		return &pb.Stored{Code: sdk.StoreUnsupported, Error: "there is no definition"}
	case m.Verb == pb.VerbList:
		out := &pb.Stored{}
		for _, text := range s.objects {
			out.Objects = append(out.Objects, []byte(text))
		}
		return out
	case m.Verb == pb.VerbGet && s.objects[key] == "":
		return &pb.Stored{Code: sdk.StoreNotFound, Error: "none"}
	case m.Verb == pb.VerbGet:
		return &pb.Stored{Object: []byte(s.objects[key])}
	}
	o, err := read(m.Object)
	if err != nil {
		return &pb.Stored{Code: sdk.StoreInvalid, Error: err.Error()}
	}
	at, _ := o.ref(m.Table)
	s.objects[at.key] = string(m.Object)
	s.writes = append(s.writes, at.key)
	return &pb.Stored{Object: m.Object}
}

// says waits until an object's status has these words, or lacks those that begin with an
// exclamation mark.
func (s *server) says(key string, words ...string) {
	s.t.Helper()
	wait.For(s.t, fmt.Sprintf("%s says %q", key, words), func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, w := range words {
			if without, no := strings.CutPrefix(w, "!"); strings.Contains(s.objects[key], without) == no {
				return fmt.Errorf("it is %s", s.objects[key])
			}
		}
		return nil
	})
}

func (s *server) written() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// routeTo is a VirtualService that leads to a host.
func routeTo(t *testing.T, key, host string) *sdk.Row {
	t.Helper()
	payload, err := kinds.Encode(&networking.VirtualService{Hosts: []string{host}, Http: []*networking.HTTPRoute{{
		Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return &sdk.Row{Key: key, Payload: payload}
}

func text(key, status string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return fmt.Sprintf(`{"metadata": {"namespace": %q, "name": %q, "finalizers": ["x"]}, "spec": {"a": 1}, "status": %s}`, namespace, name, status)
}

const quick = `{"alone": true, "interval": "1s", "rate": 1000}`

// TestWrites: what is found is written beside what others say, once, though another writes at the
// same time; it goes when it is not found any more, and so does what a replica before has left.
// Others' objects, and those of another revision, are left alone.
func TestWrites(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(quick))
	left := `{"validationMessages": [{"type": {"code": "IST0101"}, "level": "ERROR"}], "conditions": [{"type": "mine"}]}`
	s := newServer(t, h, map[string]string{
		"shop/web": text("shop/web", `{"conditions": [{"type": "mine"}]}`), "shop/old": text("shop/old", left), "shop/canary": text("shop/canary", left), "shop/strange": text("shop/strange", left),
	})
	refuse := 2
	s.before = func(m *pb.Store) *pb.Stored {
		if m.Verb == pb.VerbUpdateStatus && refuse > 0 {
			refuse--
			return &pb.Stored{Code: sdk.StoreConflict, Error: "it has changed"}
		}
		return nil
	}
	service := func(host string) *sdk.Row {
		return sdk.ServiceRow(&sdk.Service{Namespace: "shop", Host: host, Ports: []*sdk.Port{{Name: "http", Number: 80}}})
	}
	canary := routeTo(t, "shop/canary", "nowhere.example")
	canary.Labels = map[string]string{"istio.io/rev": "canary"}
	h.Update(state.Services, []*sdk.Row{service("old.example")})
	h.Update(kinds.VirtualService, []*sdk.Row{routeTo(t, "shop/web", "web.example"), routeTo(t, "shop/old", "old.example"), canary, routeTo(t, "shop/file", "file.example")})
	s.says("shop/web", `"validationMessages":[{"type":{"code":"IST0101"},"level":"ERROR","documentationUrl":"https://istio.io/latest/docs/reference/config/analysis/ist0101/"}]`, `"mine"`, `"finalizers"`)
	s.says("shop/old", "!validationMessages", `"mine"`)
	h.Update(state.Services, []*sdk.Row{service("old.example"), service("web.example")})
	s.says("shop/web", "!validationMessages", `"mine"`)
	s.says("shop/canary", `"IST0101"`)
	s.says("shop/strange", `"IST0101"`)
	got := s.written()
	slices.Sort(got)
	if want := []string{"shop/old", "shop/web", "shop/web"}; !slices.Equal(got, want) {
		t.Errorf("%v were written, not %v", got, want)
	}
}

// TestTrouble: while nothing can be written it is tried again, and what one object's store refuses
// keeps no other from being written.
func TestTrouble(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(quick))
	s := newServer(t, h, map[string]string{"shop/bad": text("shop/bad", "{}"), "shop/web": text("shop/web", "{}")})
	away := 3
	s.before = func(m *pb.Store) *pb.Stored {
		switch {
		case away > 0:
			away--
			return &pb.Stored{Code: sdk.StoreUnavailable, Error: "the API server is away"}
		case m.Verb == pb.VerbUpdateStatus && strings.Contains(string(m.Object), `"bad"`):
			s.writes = append(s.writes, "refused")
			return &pb.Stored{Code: sdk.StoreInvalid, Error: "status: is bad"}
		}
		return nil
	}
	h.Update(kinds.VirtualService, []*sdk.Row{routeTo(t, "shop/bad", "bad.example"), routeTo(t, "shop/web", "web.example")})
	s.says("shop/web", `"IST0101"`)
	if n := strings.Count(strings.Join(s.written(), " "), "refused"); n > 1 {
		t.Errorf("what is refused was written %d times", n)
	}
}

// TestMany: of 10,000 objects with findings each is written once, whatever is analyzed meanwhile,
// and none that has gone.
func TestMany(t *testing.T) {
	const many = 10_000
	w, want := newWork(), map[ref][]message{}
	m := message{Level: "ERROR"}
	m.Type.Code = "IST0101"
	for i := range many {
		want[ref{kinds.VirtualService, "shop/" + strconv.Itoa(i)}] = []message{m}
	}
	w.take(want)
	written := map[ref]int{}
	for i := 0; ; i++ {
		at, list, ok := w.next()
		if !ok {
			break
		}
		written[at]++
		w.saw(at, list)
		if i%1000 == 0 {
			w.take(want) // the same is found again
		}
		if i == many/2 {
			delete(want, ref{kinds.VirtualService, "shop/1"})
			delete(written, ref{kinds.VirtualService, "shop/1"})
			w.take(want)
		}
	}
	if len(written) < many-1 || len(written) > many {
		t.Errorf("%d were written", len(written))
	}
	for at, n := range written {
		if n != 1 {
			t.Errorf("%s was written %d times", at.key, n)
		}
	}
	if len(w.queue) != 0 || len(w.queued) != 0 || len(w.has) > len(want) {
		t.Errorf("%d wait, %d are known", len(w.queue), len(w.has))
	}
}

// TestStatus: a status that is no such thing is written anew, and nothing else of the object is
// changed.
func TestStatus(t *testing.T) {
	m := message{Level: "ERROR"}
	m.Type.Code = "IST0101"
	for status, changed := range map[string]bool{
		`{}`: true, `null`: true, `{"validationMessages": null}`: true, `{"validationMessages": "x"}`: true, `{"validationMessages": [{"level": 3}]}`: true,
		`{"validationMessages": [{"type": {"code": "IST0101"}, "level": "ERROR"}]}`: false,
	} {
		o, err := read([]byte(text("a/b", status)))
		if err != nil {
			t.Fatalf("%s: %v", status, err)
		}
		out, got, err := o.with([]message{m})
		if err != nil || got != changed {
			t.Errorf("%s: changed %v, %v", status, got, err)
		}
		if got && (!json.Valid(out) || !strings.Contains(string(out), `"finalizers": ["x"]`) && !strings.Contains(string(out), `"finalizers":["x"]`)) {
			t.Errorf("%s became %s", status, out)
		}
	}
	for _, bad := range []string{"", "{", `{"status": 1}`, strings.Repeat(" ", mostText+1)} {
		if _, err := read([]byte(bad)); err == nil {
			t.Errorf("%.20q is read", bad)
		}
	}
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"rate": 0}`: "rate", `{"rate": 1001}`: "rate", `{"interval": "1ms"}`: "interval", `{"lease": "2h"}`: "lease", `{"namespace": ""}`: "namespace", `{"intervall": "1s"}`: "intervall",
	} {
		_, err := strict.Parse([]byte(config), defaults())
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// TestReadme: the example grants all that is read.
func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 1)
	text := fmt.Sprint(blocks[0])
	for _, table := range kinds.Tables() {
		if !strings.Contains(text, table) {
			t.Errorf("the example doesn't grant %s", table)
		}
	}
}
