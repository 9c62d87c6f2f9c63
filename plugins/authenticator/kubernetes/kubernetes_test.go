package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

const web = "spiffe://cluster.local/ns/shop/sa/web"

// apiServer answers reviews as a test says. test/kube has a real one.
type apiServer struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(token string, audiences []string) (authenticationv1.TokenReviewStatus, int)
	asked  atomic.Int64
	now    atomic.Int64
	most   atomic.Int64
	slow   chan struct{} // nil: it answers at once
}

// newServer knows no token. It ends with the test.
func newServer(t *testing.T) *apiServer {
	s := &apiServer{answer: func(string, []string) (authenticationv1.TokenReviewStatus, int) {
		return authenticationv1.TokenReviewStatus{Error: "invalid bearer token"}, http.StatusCreated
	}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/apis/authentication.k8s.io/v1/tokenreviews" || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	s.asked.Add(1)
	at := s.now.Add(1)
	defer s.now.Add(-1)
	for was := s.most.Load(); at > was && !s.most.CompareAndSwap(was, at); was = s.most.Load() {
	}
	if s.slow != nil {
		select {
		case <-s.slow:
		case <-r.Context().Done():
			return
		}
	}
	var review authenticationv1.TokenReview
	text, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(text, &review) != nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	status, code := s.answer(review.Spec.Token, review.Spec.Audiences)
	s.mu.Unlock()
	if code >= http.StatusBadRequest {
		http.Error(w, "no", code)
		return
	}
	review.Status = status
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(&review)
}

// knows has the server say that all tokens are an account's, for these audiences.
func (s *apiServer) knows(user string, audiences ...string) {
	s.says(authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: audiences,
		User: authenticationv1.UserInfo{Username: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}},
	}, http.StatusCreated)
}

func (s *apiServer) says(status authenticationv1.TokenReviewStatus, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func(string, []string) (authenticationv1.TokenReviewStatus, int) { return status, code }
}

// kubeconfig of the server, as Secrets have it.
func (s *apiServer) kubeconfig() string {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}],
users: [{name: a, user: {token: us}}], contexts: [{name: a, context: {cluster: a, user: a}}]}`, s.URL, ca)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// start runs the plugin for a server; what it reads is there.
func start(t *testing.T, s *apiServer, more map[string]any) *plugintest.Harness {
	t.Helper()
	config := map[string]any{"kubeconfig": write(t, filepath.Join(t.TempDir(), "kubeconfig"), s.kubeconfig())}
	for k, v := range more {
		config[k] = v
	}
	h := plugintest.Start(t, Plugin(), config)
	h.Update(state.Mesh, nil)
	return h
}

func reviews(of map[string]any) map[string]any { return map[string]any{"reviews": of} }

var signingKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

// token is one that says this of itself, as a number that makes it another one.
func token(t testing.TB, n int, others ...any) string {
	t.Helper()
	c := map[string]any{"aud": []string{"istio-ca"}, "exp": time.Now().Add(time.Hour).Unix(), "n": n}
	for i := 0; i < len(others); i += 2 {
		if c[others[i].(string)] = others[i+1]; others[i+1] == nil {
			delete(c, others[i].(string))
		}
	}
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: signingKey()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(with).Claims(c).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func shown(token, cluster, peer string) sdk.Credentials {
	c := sdk.Credentials{Headers: map[string]string{"authorization": "Bearer " + token}, RemoteAddress: peer + ":1"}
	if cluster != "" {
		c.Headers["clusterid"] = cluster
	}
	return c
}

// is compares an answer: identities, or what a refusal or a failure has.
func is(t *testing.T, what string, got *pb.Caller, want string) {
	t.Helper()
	switch {
	case strings.HasPrefix(want, "spiffe:"):
		if !slices.Equal(got.Identities, []string{want}) {
			t.Errorf("%s: %v", what, got)
		}
	case strings.HasPrefix(want, "unavailable"):
		if got.Refusal != "" || len(got.Identities) > 0 || !strings.Contains(got.Failure, strings.TrimPrefix(want, "unavailable: ")) {
			t.Errorf("%s: %v", what, got)
		}
	default:
		if got.Failure != "" || len(got.Identities) > 0 || !strings.Contains(got.Refusal, want) {
			t.Errorf("%s: %v; want a refusal with %q", what, got, want)
		}
	}
}

// TestLooks: what a token says against itself no API server is asked about.
func TestLooks(t *testing.T) {
	s := newServer(t)
	h := start(t, s, nil)
	for what, c := range map[string]struct{ token, want string }{
		"none":               {"", "no bearer token"},
		"garbage":            {"4f5e6d7c8b9a0f1e2d3c", "those are JWTs"},
		"large":              {strings.Repeat("x", maxToken+1), "the limit is 16384"},
		"unsigned":           {"eyJhbGciOiJub25lIn0.e30.", "those are JWTs"},
		"another audience":   {token(t, 1, "aud", "vault"), "its audience is none of istio-ca"},
		"first-party":        {token(t, 1, "aud", nil), "names no audience"},
		"expired":            {token(t, 1, "exp", time.Now().Add(-3*time.Minute).Unix()), "has expired"},
		"not yet valid":      {token(t, 1, "nbf", time.Now().Add(3*time.Minute).Unix()), "not valid yet"},
		"an unknown cluster": {token(t, 1), "that the header clusterid names"},
	} {
		cluster := ""
		if strings.Contains(c.want, "clusterid") {
			cluster = "nowhere"
		}
		is(t, what, h.Authenticate(shown(c.token, cluster, "10.0.0.1")), c.want)
	}
	if n := s.asked.Load(); n > 0 {
		t.Errorf("the API server was asked %d times", n)
	}
}

// TestReviews: what the API server says is what counts, and is told in words that have nothing of
// the token.
func TestReviews(t *testing.T) {
	s := newServer(t)
	h := start(t, s, reviews(map[string]any{"accepted": "0s", "refused": "0s"}))
	n := 0
	ask := func() *pb.Caller { n++; return h.Authenticate(shown(token(t, n), "", "10.0.0.1")) }
	s.knows("system:serviceaccount:shop:web", "istio-ca")
	is(t, "known", ask(), web)
	is(t, "by its own id", h.Authenticate(shown(token(t, 0), "Kubernetes", "10.0.0.1")), web)
	if got := ask(); !maps.Equal(got.Facts, map[string]string{"cluster": "Kubernetes"}) {
		t.Errorf("a token that is bound to nothing: %v", got.Facts)
	}
	s.says(authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"istio-ca"}, User: authenticationv1.UserInfo{
		Username: "system:serviceaccount:shop:web", Groups: []string{"system:serviceaccounts"},
		Extra: map[string]authenticationv1.ExtraValue{podName: {"web-1"}},
	}}, http.StatusCreated)
	if got := ask(); !maps.Equal(got.Facts, map[string]string{"cluster": "Kubernetes", "pod": "shop/web-1"}) {
		t.Errorf("a pod's token: %v", got.Facts)
	}
	s.knows("system:serviceaccount:shop:web")
	is(t, "a server that knows no audiences", ask(), "says none of istio-ca")
	s.knows("system:serviceaccount:shop:web", "api")
	is(t, "other audiences", ask(), "says none of istio-ca")
	s.knows("jane", "istio-ca")
	is(t, "a user", ask(), "not a service account's")
	s.knows("system:serviceaccount:shop", "istio-ca")
	is(t, "half an account", ask(), "not a service account's")
	s.says(authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{"istio-ca"},
		User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:web"},
	}, http.StatusCreated)
	is(t, "not of the group", ask(), "not a service account's")
	for said, want := range map[string]string{
		"invalid bearer token": "is not one that this cluster has issued",
		`[invalid bearer token, token audiences ["x"] is invalid for the target audiences ["istio-ca"]]`: "its audience is none of istio-ca",
		"[invalid bearer token, service account token has been invalidated]":                             "is gone",
		"[invalid bearer token, service account token has expired]":                                      "it has expired",
	} {
		s.says(authenticationv1.TokenReviewStatus{Error: said}, http.StatusCreated)
		is(t, said, ask(), want)
	}
	for code, want := range map[int]string{
		http.StatusForbidden: "may not create tokenreviews", http.StatusUnauthorized: "does not know the control plane",
		http.StatusTooManyRequests: "too much to do", http.StatusInternalServerError: "no answer", http.StatusServiceUnavailable: "no answer",
	} {
		s.says(authenticationv1.TokenReviewStatus{}, code)
		is(t, fmt.Sprint(code), ask(), "unavailable: "+want)
	}
	h.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
		return strings.Contains(text, "can't be asked about tokens") && fields["cluster"] == "Kubernetes"
	})
	s.Close()
	is(t, "away", ask(), "unavailable: no answer")
}

// TestFirstParty: with the setting, tokens count that are for the API server itself.
func TestFirstParty(t *testing.T) {
	s := newServer(t)
	h := start(t, s, map[string]any{"firstParty": true})
	s.mu.Lock()
	s.answer = func(_ string, audiences []string) (authenticationv1.TokenReviewStatus, int) {
		if len(audiences) > 0 {
			return authenticationv1.TokenReviewStatus{Error: "token audiences"}, http.StatusCreated
		}
		return authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"https://kubernetes"}, User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:shop:web", Groups: []string{"system:serviceaccounts"},
		}}, http.StatusCreated
	}
	s.mu.Unlock()
	is(t, "first-party", h.Authenticate(shown(token(t, 1, "aud", nil, "exp", nil), "", "10.0.0.1")), web)
}

// TestRemembers: a token is asked about once for all who show it at once, and again when it is
// forgotten; another cluster's is another.
func TestRemembers(t *testing.T) {
	s := newServer(t)
	s.knows("system:serviceaccount:shop:web", "istio-ca")
	h := start(t, s, reviews(map[string]any{"accepted": "5s", "refused": "5s"}))
	good, bad := token(t, 1), token(t, 2)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { is(t, "at once", h.Authenticate(shown(good, "", "10.0.0.1")), web) })
	}
	all.Wait()
	if n := s.asked.Load(); n != 1 {
		t.Errorf("asked %d times about one token", n)
	}
	s.says(authenticationv1.TokenReviewStatus{Error: "invalid"}, http.StatusCreated)
	is(t, "remembered", h.Authenticate(shown(good, "", "10.0.0.1")), web)
	is(t, "bad", h.Authenticate(shown(bad, "", "10.0.0.1")), "refuses the token")
	is(t, "bad again", h.Authenticate(shown(bad, "", "10.0.0.1")), "refuses the token")
	if n := s.asked.Load(); n != 2 {
		t.Errorf("asked %d times about two tokens", n)
	}
	for end := time.Now().Add(plugintest.Timeout); len(h.Authenticate(shown(good, "", "10.0.0.1")).Identities) > 0; {
		if time.Now().After(end) {
			t.Fatal("what was accepted once is remembered for ever")
		}
	}
	s.knows("system:serviceaccount:shop:web", "istio-ca")
	for end := time.Now().Add(plugintest.Timeout); len(h.Authenticate(shown(bad, "", "10.0.0.1")).Identities) == 0; {
		if time.Now().After(end) {
			t.Fatal("what was refused once is remembered for ever")
		}
	}
}

// TestOtherClusters: a token is checked by the cluster that its caller names, by whatever id, and
// by no other.
func TestOtherClusters(t *testing.T) {
	here, east := newServer(t), newServer(t)
	here.knows("system:serviceaccount:here:web", "istio-ca")
	east.knows("system:serviceaccount:east:web", "istio-ca")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "east.yaml"), east.kubeconfig())
	h := start(t, here, map[string]any{"cluster": "west", "directory": dir, "clusterAliases": map[string]string{"old": "east"}})
	row := func(from, hash string) *sdk.Row {
		return &sdk.Row{Key: "east", Payload: fmt.Appendf(nil, `{"id": "east", "from": %q, "hash": %q}`, from, hash)}
	}
	h.Update(clusters, []*sdk.Row{row("file:east.yaml", "1")})
	ask := func(cluster string) *pb.Caller {
		return h.Authenticate(shown(token(t, 1), cluster, "10.0.0.1"))
	}
	for end := time.Now().Add(plugintest.Timeout); len(ask("east").Identities) == 0; {
		if time.Now().After(end) {
			t.Fatal("the other cluster is not known")
		}
	}
	for cluster, want := range map[string]string{"": "here", "west": "here", "east": "east", "old": "east"} {
		is(t, cluster, ask(cluster), "spiffe://cluster.local/ns/"+want+"/sa/web")
	}
	east.says(authenticationv1.TokenReviewStatus{Error: "invalid"}, http.StatusCreated)
	is(t, "stolen", h.Authenticate(shown(token(t, 2), "east", "10.0.0.1")), "the API server of the cluster east refuses")
	east.Close()
	is(t, "the other is away", h.Authenticate(shown(token(t, 3), "east", "10.0.0.1")), "unavailable: cluster east")
	is(t, "and this one is not", h.Authenticate(shown(token(t, 3), "west", "10.0.0.1")), "spiffe://cluster.local/ns/here/sa/web")
	h.Update(clusters, []*sdk.Row{row("file:none.yaml", "2")})
	for end := time.Now().Add(plugintest.Timeout); !strings.Contains(ask("east").Failure, "kubeconfig can't be had"); {
		if time.Now().After(end) {
			t.Fatal("another kubeconfig is not read")
		}
	}
	h.Update(clusters, nil, "east")
	for end := time.Now().Add(plugintest.Timeout); !strings.Contains(ask("east").Refusal, "is not known"); {
		if time.Now().After(end) {
			t.Fatal("a cluster that has gone is known still")
		}
	}
}

// TestFlood: who makes tokens up is held to a few at once, and keeps nobody else waiting.
func TestFlood(t *testing.T) {
	s := newServer(t)
	s.slow = make(chan struct{})
	h := start(t, s, reviews(map[string]any{"concurrent": 8, "perPeer": 3, "waiting": 10, "timeout": "1m"}))
	var flood sync.WaitGroup
	var refused, sentAway atomic.Int64
	for n := range 100 {
		bad := token(t, n)
		flood.Go(func() {
			got := h.Authenticate(shown(bad, "", "10.6.6.6"))
			if strings.Contains(got.Failure, "too many tokens of callers of this address") {
				sentAway.Add(1)
			} else if got.Refusal != "" {
				refused.Add(1)
			}
		})
	}
	for end := time.Now().Add(plugintest.Timeout); s.now.Load() < 3 || sentAway.Load() < 87; {
		if time.Now().After(end) {
			t.Fatalf("%d are being checked, %d sent away", s.now.Load(), sentAway.Load())
		}
		time.Sleep(time.Millisecond)
	}
	good := make(chan *pb.Caller, 1)
	go func() { good <- h.Authenticate(shown(token(t, 1000), "", "10.0.0.1")) }()
	for end := time.Now().Add(plugintest.Timeout); s.now.Load() < 4; {
		if time.Now().After(end) {
			t.Fatal("another caller waits for those who flood")
		}
		time.Sleep(time.Millisecond)
	}
	close(s.slow)
	flood.Wait()
	if got := <-good; got.Refusal == "" {
		t.Error(got)
	}
	if refused.Load() != 13 || sentAway.Load() != 87 || s.most.Load() > 8 {
		t.Errorf("%d refused, %d sent away, %d at once", refused.Load(), sentAway.Load(), s.most.Load())
	}
}

// TestGate: who has left is not remembered, and who gives up takes no place.
func TestGate(t *testing.T) {
	g := newLimiter(2, 1, 1)
	leave, err := g.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.enter(gone, "a"); !errors.Is(err, sdk.ErrUnavailable) {
		t.Error(err)
	}
	other, err := g.enter(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.enter(gone, "c"); !errors.Is(err, sdk.ErrUnavailable) {
		t.Error(err)
	}
	leave()
	other()
	if len(g.peers)+len(g.all) > 0 {
		t.Errorf("kept: %v, %d", g.peers, len(g.all))
	}
}

func TestConfig(t *testing.T) {
	for field, config := range map[string]string{
		"audiences": `{"audiences": []}`, "cluster": `{"cluster": ""}`, "qps": `{"qps": 0}`,
		"reviews.perPeer": `{"reviews": {"perPeer": 0}}`, "reviews.timeout": `{"reviews": {"timeout": "0s"}}`,
		"kubeconfig": `{"kubeconfig": "/none"}`,
	} {
		if got, why := plugintest.Refusal(t, Plugin(), config); got != field {
			t.Errorf("%s: refused for %q: %s", field, got, why)
		}
	}
}

// TestReadme: the example's config is one, but for its kubeconfig, which is that of the pod.
func TestReadme(t *testing.T) {
	blocks, text := readme.Example(t, 3)
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	s.knows("system:serviceaccount:shop:web", "istio-ca")
	h := start(t, s, config)
	is(t, "the example", h.Authenticate(shown(token(t, 1), "west", "10.0.0.1")), strings.TrimSpace(blocks[2].Text))
	if !strings.Contains(blocks[1].Text, "audience: istio-ca") {
		t.Errorf("the example's pod has no token for istio-ca:\n%s", blocks[1].Text)
	}
}
