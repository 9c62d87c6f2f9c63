package beside

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// TestOnePort asks both about their HTTP port where --grpcAddr is empty: each page and each call is
// answered alike, but for one connection that is used for both.
func TestOnePort(t *testing.T) {
	need.All(t) // it builds istiod
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, objects)
	istiod := kube.StartIstiodWith(t, c, []string{"--grpcAddr="})
	plane := mesh.StartShared(t, binary, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig)
	plane.Ready(t)
	for _, q := range []struct {
		what, want, coxswain string
		ask                  func(t *testing.T, s *server) string
	}{
		{what: "a page, HTTP/1.1", want: "HTTP/1.1 200", ask: page(false, "GET", "/ready", "")},
		{what: "a page, HTTP/2", want: "HTTP/2.0 200", ask: page(true, "GET", "/ready", "")},
		{what: "no page, HTTP/1.1", want: "HTTP/1.1 404", ask: page(false, "GET", "/nothing", "")},
		{what: "no page, HTTP/2", want: "HTTP/2.0 404", ask: page(true, "GET", "/nothing", "")},
		{what: "gRPC's type, HTTP/1.1", want: "HTTP/1.1 404", ask: page(false, "POST", "/x.Y/Z", "application/grpc")},
		{what: "clusters, by gRPC", want: "OK", ask: func(t *testing.T, s *server) string { return s.comes(t, caller{}.inPlain()) }},
		{what: "an unknown method, by gRPC", want: "Unimplemented", ask: unknownMethod},
		{
			what: "gRPC after a page on one connection", want: "HTTP/2.0 200 grpc-status 12",
			coxswain: "HTTP/2.0 200 grpc-status 14", ask: func(t *testing.T, s *server) string {
				by := browser(t, true)
				asked(t, by, s, "GET", "/ready", "")
				return asked(t, by, s, "POST", "/x.Y/Z", "application/grpc")
			},
		},
	} {
		if q.coxswain == "" {
			q.coxswain = q.want
		}
		for _, s := range []*server{{name: "istiod", plain: istiod.HTTP, silent: true}, {name: "coxswain", plain: plane.XDS}} {
			want := q.want
			if s.name == "coxswain" {
				want = q.coxswain
			}
			if got := q.ask(t, s); got != want {
				t.Errorf("%s of %s: %s, not %s", q.what, s.name, got, want)
			}
		}
	}
}

func browser(t *testing.T, two bool) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetHTTP1(!two)
	transport.Protocols.SetUnencryptedHTTP2(two)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// page asks by one version of HTTP, on a connection of its own.
func page(two bool, method, path, contentType string) func(t *testing.T, s *server) string {
	return func(t *testing.T, s *server) string {
		t.Helper()
		return asked(t, browser(t, two), s, method, path, contentType)
	}
}

// asked returns the version, the code and gRPC's status, if there is one.
func asked(t *testing.T, by *http.Client, s *server, method, path, contentType string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	body := strings.NewReader("")
	if contentType != "" {
		body = strings.NewReader("\x00\x00\x00\x00\x00")
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.plain+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Te", "trailers")
	}
	answer, err := by.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%s %d", answer.Proto, answer.StatusCode)
	// A status may come before the body, where there is none, or after it.
	if code := cmp.Or(answer.Header.Get("Grpc-Status"), answer.Trailer.Get("Grpc-Status")); code != "" {
		text += " grpc-status " + code
	}
	return text
}

func unknownMethod(t *testing.T, s *server) string {
	t.Helper()
	conn, err := grpc.NewClient(s.plain, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return status.Code(conn.Invoke(ctx, "/x.Y/Z", &emptypb.Empty{}, &emptypb.Empty{})).String()
}
