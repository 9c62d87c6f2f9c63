package jwks

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// asked is what rules ask for, at most so many sets for a namespace.
func asked(t *testing.T, most int, rows ...*pb.Row) wanted {
	t.Helper()
	var b state.Builder
	change, err := b.Apply(&pb.State{Whole: true, Tables: []*pb.TableRows{{Table: kinds.RequestAuthentication, Upserts: rows}}})
	if err != nil {
		t.Fatal(err)
	}
	return wants(change.State, most)
}

// in is a row of a namespace and an age.
func in(t *testing.T, namespace, name string, created int64, rules ...*security.JWTRule) *pb.Row {
	r := rule(t, name, rules...)
	r.Key, r.Created = namespace+"/"+name, created
	return r
}

// Of rules that want the same keys the most patient one counts, in whatever order they come, and
// none longer than maxTimeout.
func TestMostPatientRuleCounts(t *testing.T) {
	const uri = "https://a.example/keys"
	f, err := newFetcher(defaults())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		seconds []int64
		want    time.Duration
	}{
		{[]int64{1, 9}, 9 * time.Second}, {[]int64{9, 1}, 9 * time.Second}, {[]int64{1, 9, 2}, 9 * time.Second}, {[]int64{0, 9}, 9 * time.Second},
		{[]int64{9, 0}, 9 * time.Second}, {[]int64{0}, 5 * time.Second}, {[]int64{3600}, 10 * time.Second}, {[]int64{-1}, 5 * time.Second},
	} {
		var rows []*pb.Row
		for i, s := range c.seconds {
			r := &security.JWTRule{JwksUri: uri}
			if s != 0 {
				r.Timeout = durationpb.New(time.Duration(s) * time.Second)
			}
			rows = append(rows, rule(t, string(rune('a'+i)), r))
		}
		f.heed(asked(t, 100, rows...).patience)
		if got := f.within(uri); got != c.want {
			t.Errorf("rules that wait for %v seconds: %v, want %v", c.seconds, got, c.want)
		}
	}
}

// A namespace has so many sets, those of its oldest rules; what others ask for is theirs.
func TestSetsOfANamespaceAreBounded(t *testing.T) {
	var rows []*pb.Row
	for i := range 5 {
		uri := fmt.Sprintf("https://evil.example/%d", i)
		rows = append(rows, in(t, "evil", fmt.Sprintf("r%d", i), int64(10-i), &security.JWTRule{JwksUri: uri}, &security.JWTRule{JwksUri: uri}))
	}
	rows = append(rows, in(t, "demo", "r", 99, &security.JWTRule{JwksUri: "https://evil.example/0"}))
	got := asked(t, 2, rows...)
	for key, want := range map[string][]string{
		"https://evil.example/4": {"evil"}, "https://evil.example/3": {"evil"}, "https://evil.example/0": {"demo"}, "https://evil.example/1": nil,
	} {
		if !slices.Equal(got.namespaces[key], want) {
			t.Errorf("%s is for %q, want %q", key, got.namespaces[key], want)
		}
		if _, ok := got.sets[key]; ok != (want != nil) {
			t.Errorf("%s is fetched: %v", key, ok)
		}
	}
	if err := got.tooMany(2); err == nil || !strings.Contains(err.Error(), `"evil"`) || strings.Contains(err.Error(), `"demo"`) {
		t.Errorf("said: %v", err)
	}
	if got := asked(t, 2, rows[5]); got.tooMany(2) != nil {
		t.Error("something is refused")
	}
}

// A URI that one rule names as an issuer and another as a key set is either.
func TestAnIssuerAndAKeySetOfOneName(t *testing.T) {
	i := serve(t, httptest.NewServer)
	i.page("/a/.well-known/openid-configuration", `{"jwks_uri": "`+i.URL+`/k"}`)
	i.page("/k", one)
	i.page("/b", two)
	h := plugintest.Start(t, Plugin(), `{}`)
	a, b := i.URL+"/a", i.URL+"/b"
	h.Update(kinds.RequestAuthentication, []*sdk.Row{
		in(t, "demo", "r", 1, &security.JWTRule{Issuer: a}, &security.JWTRule{JwksUri: b}),
		in(t, "evil", "r", 0, &security.JWTRule{JwksUri: a}, &security.JWTRule{Issuer: b}),
	})
	h.WaitRows(Table, func(rows map[string]*sdk.Row) bool { return has(a, one)(rows) && has(b, two)(rows) })
}

// Rules of one namespace whose servers never answer hold its share of the places, however long they
// say that it may take; keys of others are fetched meanwhile.
func TestSilentServersOfANamespaceDelayNoOther(t *testing.T) {
	var held atomic.Int32
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		held.Add(1)
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(release) })
	i := serve(t, httptest.NewServer)
	i.page("/keys", one)
	// The most that a fetch may take is far more than this test: what hangs hangs all the time.
	h := plugintest.Start(t, Plugin(), `{"maxTimeout": "1h", "concurrent": 8, "concurrentPerNamespace": 3}`)
	var rules []*sdk.Row
	for n := range 20 {
		rules = append(rules, in(t, "evil", fmt.Sprint("r", n), 0,
			&security.JWTRule{JwksUri: fmt.Sprint(silent.URL, "/", n), Timeout: durationpb.New(time.Hour)}))
	}
	h.Update(kinds.RequestAuthentication, rules)
	h.Update(kinds.RequestAuthentication, []*sdk.Row{in(t, "demo", "r", 1, &security.JWTRule{JwksUri: i.URL + "/keys"})})
	h.WaitRows(Table, has(i.URL+"/keys", one))
	if n := held.Load(); n > 3 {
		t.Errorf("%d fetches of one namespace, want 3 at most", n)
	}
}

// An answer that is nearly as large as a row may be fails by itself, with a reason: the set that
// was fetched before stays, others are fetched, and the plugin goes on.
func TestLargeAnswersFailAlone(t *testing.T) {
	i := serve(t, httptest.NewServer)
	large := `{"keys":[{"kty":"oct","k":"YQ","x":"` + strings.Repeat("x", 1_048_000-42) + `"}]}`
	i.page("/large", one)
	i.page("/keys", one)
	h := plugintest.Start(t, Plugin(), `{"refresh": "10ms", "retry": "5ms", "maxRetry": "10ms"}`)
	uri := i.URL + "/large"
	h.Update(kinds.RequestAuthentication, []*sdk.Row{in(t, "evil", "r", 0, &security.JWTRule{JwksUri: uri})})
	h.WaitRows(Table, has(uri, one))
	i.page("/large", large)
	h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
		return fields["set"] == uri && strings.Contains(fields["error"], "larger than the limit of 262144 bytes")
	})
	h.Update(kinds.RequestAuthentication, []*sdk.Row{in(t, "demo", "r", 0, &security.JWTRule{JwksUri: i.URL + "/keys"})})
	h.WaitRows(Table, func(rows map[string]*sdk.Row) bool { return has(i.URL+"/keys", one)(rows) && has(uri, one)(rows) })
	i.page("/large", two)
	h.WaitRows(Table, has(uri, two))
}

// A set that Envoy would refuse is none.
func TestUselessSetsAreNotPublished(t *testing.T) {
	i := serve(t, httptest.NewServer)
	i.page("/keys", `{"keys":[]}`)
	h := plugintest.Start(t, Plugin(), `{}`)
	h.Update(kinds.RequestAuthentication, []*sdk.Row{rule(t, "a", &security.JWTRule{JwksUri: i.URL + "/keys"})})
	h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
		return strings.Contains(fields["error"], "of no use")
	})
	if len(h.Rows(Table)) > 0 {
		t.Error("it was published")
	}
}
