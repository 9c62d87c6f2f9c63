package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
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
	api "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

const (
	audience = "istio-ca"
	web      = "spiffe://cluster.local/ns/shop/sa/web"
	webUser  = "system:serviceaccount:shop:web"
)

// signer is a key of an issuer.
type signer struct {
	id  string
	alg jose.SignatureAlgorithm
	key crypto.Signer
}

func ec(t *testing.T, id string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{id, jose.ES256, key}
}

// set is a key set of the signers' public keys.
func set(t *testing.T, signers ...signer) string {
	t.Helper()
	var s jose.JSONWebKeySet
	for _, of := range signers {
		s.Keys = append(s.Keys, jose.JSONWebKey{Key: of.key.Public(), KeyID: of.id, Algorithm: string(of.alg), Use: "sig"})
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// token is one that says claims, of a key.
func (s signer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	return sign(t, s.alg, jose.JSONWebKey{Key: s.key, KeyID: s.id}, claims)
}

func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(with).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// claims are those of a good token, with others in the place of some; a nil one is left out.
func claims(issuer string, others ...any) map[string]any {
	now := time.Now()
	c := map[string]any{"iss": issuer, "aud": audience, "sub": webUser, "exp": now.Add(time.Hour).Unix(), "nbf": now.Add(-time.Minute).Unix()}
	for i := 0; i < len(others); i += 2 {
		if c[others[i].(string)] = others[i+1]; others[i+1] == nil {
			delete(c, others[i].(string))
		}
	}
	return c
}

func bearer(token string) sdk.Credentials {
	return sdk.Credentials{Headers: map[string]string{"authorization": "Bearer " + token}}
}

// server publishes pages, and counts who asks.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string]string
	asked atomic.Int64
}

func serve(t *testing.T, start func(http.Handler) *httptest.Server) *server {
	s := &server{pages: map[string]string{}}
	s.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		s.mu.Lock()
		page, ok := s.pages[r.URL.Path]
		s.mu.Unlock()
		if !ok {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) page(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages[path] = text; text == "" {
		delete(s.pages, path)
	}
}

// refuses checks that a token is refused for a reason, which tells nothing of the token.
func refuses(t *testing.T, what string, h *plugintest.Harness, token, reason string) {
	t.Helper()
	got := h.Authenticate(bearer(token))
	if len(got.Identities) > 0 || !strings.Contains(got.Refusal, reason) || got.Failure != "" {
		t.Errorf("%s: %v; want a refusal with %q", what, got, reason)
	}
	for _, part := range strings.Split(token, ".") {
		if len(part) > 8 && strings.Contains(got.Refusal, part) {
			t.Errorf("%s: the refusal has a part of the token: %s", what, got.Refusal)
		}
	}
}

func accepts(t *testing.T, what string, h *plugintest.Harness, token string, ids ...string) {
	t.Helper()
	if got := h.Authenticate(bearer(token)); !slices.Equal(got.Identities, ids) {
		t.Errorf("%s: %v; want %v", what, got, ids)
	}
}

// TestTokens: what is right of a token is its service account, and whatever is wrong has a reason
// of its own.
func TestTokens(t *testing.T) {
	const issuer, other = "https://accounts.example", "https://other.example"
	good, stranger := ec(t, "1"), ec(t, "1")
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	byRSA, byPSS, byEd := signer{"2", jose.RS256, rsaKey}, signer{"3", jose.PS384, rsaKey}, signer{"4", jose.EdDSA, edKey}
	h := plugintest.Start(t, Plugin(), map[string]any{"trustDomain": "cluster.local", "issuers": []any{
		map[string]any{"issuer": issuer, "audiences": []string{audience, "mesh"}, "jwks": set(t, good, byRSA, byPSS, byEd)},
		map[string]any{"issuer": other, "audiences": []string{"elsewhere"}, "jwks": set(t, ec(t, "1"))},
	}})
	for _, s := range []signer{good, byRSA, byPSS, byEd} {
		accepts(t, string(s.alg), h, s.token(t, claims(issuer)), web)
	}
	accepts(t, "one of several audiences", h, good.token(t, claims(issuer, "aud", []string{"x", "mesh"})), web)
	accepts(t, "no key named", h, sign(t, jose.ES256, good.key, claims(issuer)), web)
	accepts(t, "expired within the skew", h, good.token(t, claims(issuer, "exp", time.Now().Add(-5*time.Second).Unix())), web)
	accepts(t, "early within the skew", h, good.token(t, claims(issuer, "nbf", time.Now().Add(5*time.Second).Unix())), web)

	soon, past := time.Now().Add(time.Minute).Unix(), time.Now().Add(-time.Minute).Unix()
	signed := good.token(t, claims(issuer))
	header, rest, _ := strings.Cut(signed, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	_, elsewhere, _ := strings.Cut(good.token(t, claims(issuer, "sub", "system:serviceaccount:bank:root")), ".")
	forged, _, _ := strings.Cut(elsewhere, ".")
	public, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ token, reason string }{
		"none":                {"", "no bearer token was shown"},
		"no JWT":              {"4f5e6d7c8b9a0f1e2d3c", "is no JWT"},
		"two parts":           {header + "." + payload, "is no JWT"},
		"unsigned":            {"eyJhbGciOiJub25lIn0." + payload + ".", "is no JWT"},
		"a shared secret":     {sign(t, jose.HS256, []byte(strings.Repeat("k", 64)), claims(issuer)), "is no JWT"},
		"the key as a secret": {sign(t, jose.HS256, public, claims(issuer)), "is no JWT"},
		"larger than a token": {strings.Repeat("x", maxToken+1), "the limit is 16384"},
		"another issuer":      {good.token(t, claims("https://evil.example")), "issuer that is not configured"},
		"no issuer":           {good.token(t, claims("", "iss", nil)), "issuer that is not configured"},
		"a stranger's key":    {stranger.token(t, claims(issuer)), "signature is wrong"},
		"another's key":       {good.token(t, claims(other)), "signature is wrong"},
		"an unknown key":      {ec(t, "9").token(t, claims(issuer)), "a key that its issuer hasn't got"},
		"another algorithm":   {sign(t, jose.RS512, jose.JSONWebKey{Key: rsaKey, KeyID: "2"}, claims(issuer)), "a key that its issuer hasn't got"},
		"other claims":        {header + "." + forged + "." + signature, "signature is wrong"},
		"expired":             {good.token(t, claims(issuer, "exp", past)), "has expired"},
		"not yet valid":       {good.token(t, claims(issuer, "nbf", soon)), "not valid yet"},
		"no expiry":           {good.token(t, claims(issuer, "exp", nil)), "says not when it expires"},
		"another audience":    {good.token(t, claims(issuer, "aud", "elsewhere")), "its audience is none of istio-ca, mesh"},
		"no audience":         {good.token(t, claims(issuer, "aud", nil)), "its audience is none of"},
		"no service account":  {good.token(t, claims(issuer, "sub", "jane")), "no service account"},
		"an account too much": {good.token(t, claims(issuer, "sub", webUser+":x")), "no service account"},
		"a path as namespace": {good.token(t, claims(issuer, "sub", "system:serviceaccount:a/sa/b:web")), "no service account"},
	} {
		refuses(t, what, h, c.token, c.reason)
	}
}

// TestTrustDomain: identities are of the mesh's trust domain, whatever it becomes.
func TestTrustDomain(t *testing.T) {
	const issuer = "https://accounts.example"
	s := ec(t, "1")
	h := plugintest.Start(t, Plugin(), map[string]any{"issuers": []any{map[string]any{"issuer": issuer, "audiences": []string{audience}, "jwks": set(t, s)}}})
	settings, err := kinds.Encode(&api.MeshConfig{TrustDomain: "corp.example"})
	if err != nil {
		t.Fatal(err)
	}
	h.Update(state.Mesh, []*sdk.Row{{Key: state.Mesh, Payload: settings}})
	accepts(t, "the mesh's", h, s.token(t, claims(issuer)), "spiffe://corp.example/ns/shop/sa/web")
}

// TestKeysAreFound: by discovery over TLS, once; a key that is new is fetched when the first token
// has it.
func TestKeysAreFound(t *testing.T) {
	s := serve(t, httptest.NewTLSServer)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	one, two := ec(t, "1"), ec(t, "2")
	issuer := s.URL + "/realm"
	s.page("/realm/.well-known/openid-configuration", fmt.Sprintf(`{"issuer": %q, "jwks_uri": %q}`, issuer, s.URL+"/keys"))
	s.page("/keys", set(t, one))
	h := plugintest.Start(t, Plugin(), map[string]any{
		"trustDomain": "cluster.local", "caFile": ca, "retry": "50ms",
		"issuers": []any{map[string]any{"issuer": issuer, "audiences": []string{audience}}},
	})
	for range 20 {
		accepts(t, "discovered", h, one.token(t, claims(issuer)), web)
	}
	if n := s.asked.Load(); n != 2 {
		t.Errorf("the issuer was asked %d times for 20 tokens, not twice", n)
	}
	s.page("/keys", set(t, two))
	end := time.Now().Add(plugintest.Timeout)
	for !slices.Equal(h.Authenticate(bearer(two.token(t, claims(issuer)))).Identities, []string{web}) {
		if time.Now().After(end) {
			t.Fatal("a new key is not fetched")
		}
	}
	refuses(t, "the old key", h, one.token(t, claims(issuer)), "a key that its issuer hasn't got")
	end = time.Now().Add(plugintest.Timeout)
	s.page("/realm/.well-known/openid-configuration", fmt.Sprintf(`{"issuer": "https://evil.example", "jwks_uri": %q}`, s.URL+"/keys"))
	for !strings.Contains(strings.Join(h.Logs(), "\n"), `calls itself "https://evil.example"`) {
		if h.Authenticate(bearer(ec(t, "3").token(t, claims(issuer)))); time.Now().After(end) {
			t.Fatal("keys of an issuer that calls itself otherwise are taken")
		}
	}
}

// clock is one that is set.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time           { return time.Unix(0, c.at.Load()) }
func (c *clock) forward(by time.Duration) { c.at.Add(int64(by)) }

func timed(t *testing.T, config map[string]any) (*Authenticator, *clock) {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	c := defaults()
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	is := &clock{}
	is.at.Store(time.Now().UnixNano())
	a, err := newAt(c, is.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.end()
		a.fetches.Wait()
		a.sets.Close()
	})
	return a, is
}

// TestServerAway: the last good keys count for a time, whether they have what a token is signed
// with; then nobody can tell. Tokens with unknown keys make a fetch now and then.
func TestServerAway(t *testing.T) {
	s := serve(t, httptest.NewServer)
	one := ec(t, "1")
	s.page("/keys", set(t, one))
	a, is := timed(t, map[string]any{
		"trustDomain": "cluster.local", "issuers": []any{map[string]any{"issuer": "i", "audiences": []string{audience}, "jwksUri": s.URL + "/keys"}},
	})
	long := one.token(t, claims("i", "exp", time.Now().Add(72*time.Hour).Unix()))
	stranger := ec(t, "2").token(t, claims("i"))
	ask := func(token string) string {
		_, err := a.Authenticate(t.Context(), bearer(token))
		a.fetches.Wait() // what is fetched beside
		if err == nil {
			return "yes"
		}
		return err.Error()
	}
	is1 := func(what, token, want string) {
		t.Helper()
		if got := ask(token); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", what, got, want)
		}
	}
	is1("fetched", long, "yes")
	for range 1000 {
		is1("unknown key", stranger, "hasn't got")
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("%d fetches for 1000 tokens with an unknown key at once", n)
	}
	is.forward(11 * time.Second)
	is1("unknown key later", stranger, "hasn't got")
	if n := s.asked.Load(); n != 2 {
		t.Errorf("%d fetches", n)
	}
	s.page("/keys", "")
	is.forward(time.Hour)
	is1("away", long, "yes")
	is1("away, and unknown", stranger, "unavailable")
	is.forward(22 * time.Hour)
	is1("away for long", long, "yes")
	is.forward(2 * time.Hour)
	is1("away for too long", long, "can't be fetched")
	s.page("/keys", set(t, one))
	is1("just tried", long, "unavailable")
	is.forward(11 * time.Second)
	is1("back", long, "yes")
}

// TestFile: keys of a file are read again when it changes.
func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	one, two := ec(t, "1"), ec(t, "2")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(set(t, one))
	a, is := timed(t, map[string]any{
		"trustDomain": "cluster.local", "issuers": []any{map[string]any{"issuer": "i", "audiences": []string{audience}, "jwksFile": file}},
	})
	knows := func(s signer) bool {
		defer a.fetches.Wait()
		ids, _ := a.Authenticate(t.Context(), bearer(s.token(t, claims("i"))))
		return slices.Equal(ids, []string{web})
	}
	if !knows(one) || knows(two) {
		t.Error("the file has the first key alone")
	}
	write(set(t, two))
	if is.forward(11 * time.Second); !knows(two) || knows(one) {
		t.Error("the file has the second key alone")
	}
	write("{")
	if is.forward(11 * time.Second); !knows(two) {
		t.Error("a broken file takes the keys away")
	}
}

// TestKeySets: what is of no use is left out, and what is too much refused.
func TestKeySets(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	many := make([]signer, maxKeys+1)
	one := ec(t, "1")
	for i := range many {
		many[i] = one
	}
	private, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: one.key, KeyID: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ text, want string }{
		"weak":     {set(t, signer{"1", jose.RS256, weak}), "no key that signatures"},
		"many":     {set(t, many...), "65 keys; the limit is 64"},
		"secrets":  {`{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}`, "no key that signatures"},
		"private":  {string(private), "no key that signatures"},
		"other":    {`{"keys": [{"kty": "new"}, 7]}`, "no key that signatures"},
		"no set":   {`[]`, "no key set"},
		"for more": {strings.Replace(set(t, one), `"use":"sig"`, `"use":"enc"`, 1), "no key that signatures"},
	} {
		if _, err := readKeys([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if all, err := readKeys([]byte(strings.Replace(set(t, one), "[", `[{"kty": "new"}, `, 1))); err != nil || len(all) != 1 {
		t.Errorf("a key that is not understood takes the others along: %v", err)
	}
}

func TestConfig(t *testing.T) {
	keys := set(t, ec(t, "1"))
	of := func(fields map[string]any) map[string]any {
		if fields["audiences"] == nil {
			fields["audiences"] = []string{audience}
		}
		return map[string]any{"issuers": []any{fields}}
	}
	for field, config := range map[string]any{
		"issuers[0].issuer":    of(map[string]any{"jwks": keys}),
		"issuers[0].audiences": of(map[string]any{"issuer": "i", "jwks": keys, "audiences": []string{}}),
		"issuers[0]":           of(map[string]any{"issuer": "i", "jwks": keys, "jwksUri": "https://a.example"}),
		"issuers[0].jwks":      of(map[string]any{"issuer": "i", "jwks": "{}"}),
		"issuers[0].jwksUri":   of(map[string]any{"issuer": "i", "jwksUri": "file:///etc/passwd"}),
		"issuers[1].issuer": map[string]any{"issuers": []any{
			map[string]any{"issuer": "i", "jwks": keys, "audiences": []string{"a"}}, map[string]any{"issuer": "i", "jwks": keys, "audiences": []string{"b"}},
		}},
		"refresh": `{"refresh": "0s"}`, "skew": `{"skew": "x"}`, "maxBytes": `{"maxBytes": 0}`, "caFile": `{"caFile": "/none"}`,
	} {
		if got, why := plugintest.Refusal(t, Plugin(), config); got != field {
			t.Errorf("%s: refused for %q: %s", field, got, why)
		}
	}
	if got, _ := plugintest.Refusal(t, Plugin(), of(map[string]any{"issuer": "i"})); got != "issuers[0].issuer" {
		t.Errorf("an issuer that can't be asked for its keys: %q", got)
	}
	if got, _ := plugintest.Refusal(t, Plugin(), of(map[string]any{"issuer": "i", "jwksFile": "/none"})); got != "issuers[0]" {
		t.Errorf("a file that is not there: %q", got)
	}
}
