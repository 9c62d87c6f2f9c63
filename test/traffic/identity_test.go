package traffic

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// issuer signs tokens.
type issuer struct{ key *rsa.PrivateKey }

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{key}
}

// keys is its set of keys (RFC 7517).
func (i *issuer) keys() string {
	e := big.NewInt(int64(i.key.E)).Bytes()
	return fmt.Sprintf(`{"keys":[{"kty":"RSA","kid":"k","alg":"RS256","n":"%s","e":"%s"}]}`, base64URL(i.key.N.Bytes()), base64URL(e))
}

// token has these claims (RFC 7519), and the issuer's name if they don't say another.
func (i *issuer) token(claims map[string]any) string {
	all := map[string]any{"iss": "https://issuer.example", "sub": "somebody"}
	for k, v := range claims {
		all[k] = v
	}
	payload, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	signed := base64URL([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + base64URL(payload)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return signed + "." + base64URL(signature)
}

func base64URL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// ticket is the header that servers which authorize ask for.
const ticket = "x-ticket"

// authorizeHTTP starts a server that lets through what has a ticket.
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/extensions/filters/http/ext_authz/v3/ext_authz.proto
func authorizeHTTP(t *testing.T) (port int) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(ticket) != "good" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("x-authorized-by", "http")
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.Listener.Addr().(*net.TCPAddr).Port
}

// authorizer does the same as a server of Envoy's Authorization service.
type authorizer struct {
	authv3.UnimplementedAuthorizationServer
}

func (authorizer) Check(_ context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	if r.GetAttributes().GetRequest().GetHttp().GetHeaders()[ticket] != "good" {
		return &authv3.CheckResponse{Status: &status.Status{Code: int32(codes.PermissionDenied)}}, nil
	}
	return &authv3.CheckResponse{Status: &status.Status{}, HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
		Headers: []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "x-authorized-by", Value: "grpc"}}},
	}}}, nil
}

func authorizeGRPC(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	authv3.RegisterAuthorizationServer(s, authorizer{})
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-ended })
	return l.Addr().(*net.TCPAddr).Port
}
