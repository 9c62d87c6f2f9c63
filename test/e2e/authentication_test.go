package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	secrets = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

	tokenSet = `
plugins:
- name: operators
  kind: authenticator
  builtin: authenticator/token
  config: {file: operators.yaml}
  limits: {call: 3s}
- name: workloads
  kind: authenticator
  builtin: authenticator/token
  config: {file: workloads.yaml}
  limits: {call: 3s}
- name: edge
  kind: generator
  builtin: generator/static
  config: {dir: resources}
`
	tokenResources = `
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s}
- {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: key, generic_secret: {secret: {inline_string: treasure}}}
`
	operatorToken, webToken, newToken = "operator-0123456789", "workload-0123456789", "workload-9876543210"
	operatorID, webID                 = "spiffe://cluster.local/ns/ops/sa/operator", "spiffe://cluster.local/ns/shop/sa/web"
)

// guarded is a control plane whose set has authenticators.
type guarded struct {
	*mesh.Plane
	t    *testing.T
	dir  string
	conn *grpc.ClientConn
}

func newGuarded(t *testing.T, args ...string) *guarded {
	t.Helper()
	return guard(t, tokenSet, args...)
}

func guard(t *testing.T, set string, args ...string) *guarded {
	t.Helper()
	return guardWith(t, set, map[string]string{"resources/all.yaml": tokenResources}, args...)
}

// guardWith starts one whose set finds files.
func guardWith(t *testing.T, set string, files map[string]string, args ...string) *guarded {
	t.Helper()
	return guardOn(t, mesh.Start, set, files, args...)
}

// guardOn starts one so.
func guardOn(t *testing.T, start starter, set string, files map[string]string, args ...string) *guarded {
	t.Helper()
	g := &guarded{t: t, dir: t.TempDir()}
	g.tokens("operators.yaml", operatorToken, operatorID)
	g.tokens("workloads.yaml", webToken, webID)
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(g.dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		g.write(name, text)
	}
	g.Plane = start(t, program, "", append(args, "--logLevel", "debug", "--plugins", g.write("plugins.yaml", set))...)
	g.Ready(t)
	g.dial()
	wait.For(t, "the authenticators serve", func() error {
		for name, p := range g.Plugins(t) {
			if p.Kind == "authenticator" && p.State != "serving" {
				return fmt.Errorf("%s is %s", name, p.State)
			}
		}
		return nil
	})
	return g
}

// dial connects to its port in plain text.
func (g *guarded) dial() {
	g.t.Helper()
	conn, err := grpc.NewClient(g.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = conn.Close() })
	g.conn = conn
}

func (g *guarded) write(name, text string) string {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return path
}

func (g *guarded) tokens(name, token, identity string) {
	g.t.Helper()
	g.write(name, fmt.Sprintf("tokens:\n- token: %s\n  identities: [%s]\n", token, identity))
}

type stream = grpc.BidiStreamingClient[discovery.DiscoveryRequest, discovery.DiscoveryResponse]

// open asks for the clusters with a token, if there is one, and returns the stream and its first
// answer.
func (g *guarded) open(token string, types ...string) (stream, *discovery.DiscoveryResponse, error) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Deadline)
	g.t.Cleanup(cancel)
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	s, err := discovery.NewAggregatedDiscoveryServiceClient(g.conn).StreamAggregatedResources(ctx)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, typeURL := range append(types, clusters) {
		g.ask(s, typeURL)
	}
	r, err := s.Recv()
	return s, r, err
}

func (g *guarded) ask(s stream, typeURL string) {
	g.t.Helper()
	m, err := structpb.NewStruct(map[string]any{"NAMESPACE": "shop", "SERVICE_ACCOUNT": "web"})
	if err != nil {
		g.t.Fatal(err)
	}
	r := &discovery.DiscoveryRequest{Node: &corev3.Node{Id: "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", Metadata: m}, TypeUrl: typeURL}
	if typeURL == secrets {
		r.ResourceNames = []string{"key"}
	}
	if err := s.Send(r); err != nil {
		g.t.Fatal(err)
	}
}

// refuses wants a stream to be refused.
func (g *guarded) refuses(token string, code codes.Code, words ...string) {
	g.t.Helper()
	_, _, err := g.open(token)
	if e := refusal(err, code, words...); e != nil {
		g.t.Error(e)
	}
}

func refusal(err error, code codes.Code, words ...string) error {
	if status.Code(err) != code {
		return fmt.Errorf("got %w, want %v", err, code)
	}
	for _, w := range words {
		if !strings.Contains(fmt.Sprint(err), w) {
			return fmt.Errorf("%q is not in: %w", w, err)
		}
	}
	return nil
}

// signal stops authenticators, or lets them go on.
func (g *guarded) signal(s syscall.Signal) {
	g.t.Helper()
	for _, name := range []string{"operators", "workloads"} {
		g.Signal(g.t, name, s)
	}
}

// TestTokens connects with tokens over plain text: who is unknown or another is refused, who is
// known gets secrets too.
func TestTokens(t *testing.T) {
	g := newGuarded(t, "--authPlaintext")
	g.refuses("", codes.Unauthenticated, "operators: no authorization header; workloads: no authorization header")
	g.refuses("stranger-0123456789", codes.Unauthenticated, "workloads: the token is unknown")
	g.refuses(operatorToken, codes.PermissionDenied, `of namespace "shop" and service account "web", but the caller is `+operatorID)

	s, r, err := g.open(webToken) // the first authenticator refuses it
	if err != nil || r.TypeUrl != clusters || len(r.Resources) != 1 {
		t.Fatal(r, err)
	}
	g.ask(s, secrets)
	if r, err = s.Recv(); err != nil || r.TypeUrl != secrets || len(r.Resources) != 1 {
		t.Fatal(r, err)
	}

	// Another token counts as soon as the file has it; streams that have begun go on.
	g.tokens("workloads.yaml", newToken, webID)
	wait.For(t, "the old token is refused", func() error {
		_, _, err := g.open(webToken)
		return refusal(err, codes.Unauthenticated)
	})
	if _, _, err := g.open(newToken); err != nil {
		t.Error(err)
	}
	g.write("workloads.yaml", "tokens:\n- tokken: "+webToken+"\n")
	wait.For(t, "the mistake is logged", func() error {
		if !strings.Contains(g.Log(), "workloads.yaml:2:3: unknown key") {
			return errors.New("not yet")
		}
		return nil
	})
	if _, _, err := g.open(newToken); err != nil {
		t.Error(err)
	}

	// Nobody can say who is calling while the authenticators stand still; streams that have begun
	// go on.
	g.signal(syscall.SIGSTOP)
	g.refuses(newToken, codes.Unavailable, "workloads did not answer within limits.call, 3s")
	g.write("resources/more.yaml", fmt.Sprintf(staticCluster, "more"))
	if r, err = s.Recv(); err != nil || r.TypeUrl != clusters || len(r.Resources) != 2 {
		t.Error(r, err)
	}
	g.signal(syscall.SIGCONT)
	wait.For(t, "they answer again", func() error {
		_, _, err := g.open(newToken)
		return err
	})
	for _, token := range []string{operatorToken, webToken, newToken, "stranger-0123456789"} {
		if strings.Contains(g.Log(), token) {
			t.Errorf("the log has the token %s", token)
		}
	}
}

// TestPlaintextIsNobody: without the setting nothing is asked of plain text, and secrets are not
// answered.
func TestPlaintextIsNobody(t *testing.T) {
	g := newGuarded(t)
	for i, token := range []string{"", webToken} {
		s, r, err := g.open(token, secrets)
		if err != nil || r.TypeUrl != clusters {
			t.Fatal(r, err)
		}
		g.write("resources/all.yaml", strings.ReplaceAll(tokenResources, "1s", fmt.Sprintf("%ds", 2+i)))
		if r, err = s.Recv(); err != nil || r.TypeUrl != clusters {
			t.Fatal(r, err)
		}
	}
}

// TestPlaintextNeedsAnAuthenticator: a setting that nobody can fulfil ends the program.
func TestPlaintextNeedsAnAuthenticator(t *testing.T) {
	set := filepath.Join(t.TempDir(), "plugins.yaml")
	const none = "plugins:\n- {name: files, kind: config, builtin: config/file, config: {dir: .}}\n" +
		"- {name: door, kind: authenticator, builtin: authenticator/certificate, disabled: true}\n"
	if err := os.WriteFile(set, []byte(none), 0o600); err != nil {
		t.Fatal(err)
	}
	plane := mesh.Start(t, program, "", "--authPlaintext", "--plugins", set)
	if plane.Wait(t) == 0 || !slices.ContainsFunc(strings.Split(plane.LastLines(60), "\n"), func(l string) bool {
		return strings.Contains(l, "authPlaintext: no plugin can say who is calling")
	}) {
		t.Error(plane.LastLines(60))
	}
}
