package grpc

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// languages are gRPC's implementations that speak xDS, each of which reads what it gets in its own
// way. https://grpc.github.io/grpc/core/md_doc_grpc_xds_features.html
var languages = map[string]func(t *testing.T, bootstrap []byte) caller{
	"grpc-go": inProcess,
	"grpc-js": func(t *testing.T, bootstrap []byte) caller {
		modules := tool(t, "grpc-js", "grpc-js", "node_modules")
		return started(t, bootstrap, []string{"NODE_PATH=" + modules}, interpreter(t, "node", "grpc-js"), "testdata/client.js")
	},
	"grpcio": func(t *testing.T, bootstrap []byte) caller {
		return started(t, bootstrap, nil, tool(t, "languages", "venv", "bin", "python"), "testdata/client.py")
	},
	"grpc-java": func(t *testing.T, bootstrap []byte) caller {
		java := interpreter(t, "java", "grpc-java")
		return started(t, bootstrap, nil, java, "-cp", filepath.Join(tool(t, "grpc-java", "grpc-java", "lib"), "*"), "testdata/Client.java")
	},
}

func inProcess(t *testing.T, bootstrap []byte) caller {
	conns := map[string]*grpc.ClientConn{}
	return func(t *testing.T, o order) answer {
		t.Helper()
		if conns[o.Target] == nil {
			conns[o.Target] = dial(t, bootstrap, o.Target)
		}
		a := answer{From: map[string]int{}}
		var headers []string
		for k, v := range o.Headers {
			headers = append(headers, k, v)
		}
		for range o.Calls {
			who, err := ask(conns[o.Target], headers...)
			if err != nil {
				a.Code, a.Details = status.Code(err), err.Error()
				return a
			}
			a.From[who]++
		}
		return a
	}
}

// step is a change, and what calls then come to after a while.
type step struct {
	name string
	// write are files and their texts; empty: it is removed.
	write map[string]string
	// target, if it isn't the service's whole name; calls, if not ten. A header `new` is another
	// one each time.
	target  string
	calls   int
	headers map[string]string
	// from are those that answer, in order; code is how calls fail.
	from string
	code codes.Code
	// smooth: no call may fail on the way there.
	smooth bool
}

// steps are what each language must do, in this order. v1 and v2 are the servers' ports.
func steps(v1, v2 int) []step {
	version, fault := map[string]string{"version": "v2"}, map[string]string{"fault": "yes"}
	later := strings.NewReplacer("name: echo", "name: later", "echo.shop", "later.shop").Replace(echo(v2, 0))
	return []step{
		{name: "endpoints are found", from: "[v1 v2]", smooth: true},
		{name: "by a short name, too", target: "echo:7070", from: "[v1 v2]", smooth: true},
		{name: "a header chooses a subset", write: map[string]string{"subsets": subsets, "weights": weights}, headers: version, calls: 30, from: "[v2]"},
		{name: "a fault", headers: fault, code: codes.DataLoss},
		{name: "a call that fails twice is repeated", headers: map[string]string{"id": "new"}, calls: 1, from: "[v1]", smooth: true},
		{
			name:    "without retries it fails",
			write:   map[string]string{"weights": strings.ReplaceAll(weights, "retries: {attempts: 3, retryOn: unavailable}", "retries: {attempts: 0}")},
			headers: map[string]string{"id": "new"}, calls: 1, code: codes.Unavailable,
		},
		{
			name:    "a subset that doesn't exist",
			write:   map[string]string{"weights": strings.ReplaceAll(weights, "subset: v2", "subset: v9")},
			headers: version, code: codes.Unavailable,
		},
		{name: "a direct response", write: map[string]string{"weights": refusals}, headers: map[string]string{"to": "nobody"}, code: codes.PermissionDenied},
		{name: "a redirect", headers: map[string]string{"to": "elsewhere"}, code: codes.Unavailable},
		{name: "the routes go", write: map[string]string{"weights": ""}, headers: map[string]string{"to": "nobody"}, from: "[v1 v2]"},
		{name: "endpoints go", write: map[string]string{"0": echo(v2, 0)}, from: "[v2]", smooth: true},
		{name: "endpoints are others", write: map[string]string{"0": echo(v1, 0)}, from: "[v1]", smooth: true},
		{name: "endpoints come", write: map[string]string{"0": echo(v1, v2)}, from: "[v1 v2]", smooth: true},
		{name: "a host that doesn't exist", target: "nobody.example:1", code: codes.Unavailable},
		{name: "a port that doesn't exist", target: "echo.shop.svc.cluster.local:1", code: codes.Unavailable},
		{name: "a service that doesn't exist yet", target: "later:7070", code: codes.Unavailable},
		{name: "it comes", write: map[string]string{"later": later}, target: "later:7070", from: "[v2]"},
		{name: "a service that is gone", write: map[string]string{"0": ""}, code: codes.Unavailable},
		{name: "it is back", write: map[string]string{"0": echo(v1, 0)}, from: "[v1]"},
	}
}

// TestLanguages: each language does the same at each step, and shares calls by weight.
func TestLanguages(t *testing.T) {
	for _, language := range slices.Sorted(maps.Keys(languages)) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			v1, v2 := start(t, "v1"), start(t, "v2")
			w := newWorld(t, echo(v1, v2))
			call := languages[language](t, bootstrap(t, w.plane.XDS, language, proxyless(), ""))
			for _, s := range steps(v1, v2) {
				w.take(t, s, call)
				if s.name == "a header chooses a subset" { // the routes have come
					sharesByWeight(t, call)
				}
			}
		})
	}
}

// sharesByWeight takes one sample, and no other: by chance it is off by five deviations less than
// once in a million times.
func sharesByWeight(t *testing.T, call caller) {
	t.Helper()
	const calls, deviation = 400, 8.66
	a := call(t, order{Target: target, Calls: calls})
	if a.Code != codes.OK || math.Abs(float64(a.From["v1"])-0.75*calls) > 5*deviation || a.From["v1"]+a.From["v2"] != calls {
		t.Errorf("of %d calls 75 %% are for v1: %+v", calls, a)
	}
}

// take does a step.
func (w *world) take(t *testing.T, s step, call caller) {
	t.Helper()
	for name, text := range s.write {
		if text != "" {
			w.write(t, name, text)
		} else if err := os.Remove(filepath.Join(w.dir, name+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	o := order{Target: target, Calls: 10, Headers: maps.Clone(s.headers)}
	if s.target != "" {
		o.Target = s.target
	}
	if s.calls > 0 {
		o.Calls = s.calls
	}
	tries := 0
	wait.For(t, s.name, func() error {
		tries++
		for k, v := range s.headers {
			if v == "new" {
				o.Headers[k] = fmt.Sprintf("%s %d", s.name, tries)
			}
		}
		a := call(t, o)
		if s.smooth && a.Code != codes.OK {
			t.Fatalf("%s: after %v a call fails: %v %s", s.name, a.From, a.Code, a.Details)
		}
		if names := fmt.Sprint(slices.Sorted(maps.Keys(a.From))); s.code == codes.OK && (a.Code != codes.OK || names != s.from) ||
			s.code != codes.OK && a.Code != s.code {
			return fmt.Errorf("%v: %v %s", names, a.Code, a.Details)
		}
		if strings.Contains(strings.ToLower(a.Details), "timeout") {
			return fmt.Errorf("it has waited in vain: %v %s", a.Code, a.Details)
		}
		return nil
	})
}
