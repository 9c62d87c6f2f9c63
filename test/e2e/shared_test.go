package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestOnePort: with --grpcAddr "" the HTTP port serves xDS, too. Envoys have it by both variants of
// the protocol, pages come by both versions of HTTP, strangers who misuse the port hold up neither,
// and a control plane that ends and starts again costs no request.
func TestOnePort(t *testing.T) {
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) {
			w := newWorldOn(t, mesh.StartShared, protocol)
			traffic := w.traffic(t)
			if log := w.plane.Log(); strings.Count(log, w.plane.HTTP) < 2 {
				t.Errorf("the log doesn't name the port twice:\n%s", log)
			}
			w.pages(t)
			misuse(t, w.plane.HTTP)
			w.pages(t)
			w.Weight1, w.Weight2, w.Old = 0, 100, false
			w.write(t, "routes.yaml")
			for _, target := range w.web("/api") {
				only(t, target, "v2-a")
			}
			if code := w.plane.Stop(t); code != 0 {
				t.Errorf("it ended with %d", code)
			}
			w.plane = w.plane.Again(t)
			w.plane.XDS = w.plane.HTTP
			w.plane.Ready(t)
			w.Shop = []*mesh.Backend{mesh.NewBackend(t, "shop")}
			w.write(t, "shop.yaml")
			for _, target := range w.shop() {
				only(t, target, "shop")
			}
			w.pages(t)
			w.finish(t, traffic)
		})
	}
}

// pages asks for some by both versions of HTTP, and for a list by gRPC.
func (w *world) pages(t *testing.T) {
	t.Helper()
	for _, two := range []bool{false, true} {
		by := browser(t, two)
		for _, path := range []string{"/ready", "/debug", "/debug/streams"} {
			if text, err := get(by, w.plane.HTTP, path); err != nil || text == "" {
				t.Errorf("%s, HTTP/2 %v: %q, %v", path, two, text, err)
			}
		}
	}
	own := w.plane.Bootstrap(t, "--name", "asking", "--namespace", "test", "--type", "sidecar", "--ip", "127.0.0.29")
	if got := mesh.Names(t, w.plane.Fetch(t, own, clusters)); len(got) == 0 {
		t.Error("gRPC's client gets no clusters")
	}
}

// browser asks by one version of HTTP in plain text.
func browser(t *testing.T, two bool) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetHTTP1(!two)
	transport.Protocols.SetUnencryptedHTTP2(two)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: wait.Deadline}
}

func get(by *http.Client, address, path string) (string, error) {
	r, err := by.Get("http://" + address + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", r.Status, text)
	}
	return string(text), err
}

// misuse opens connections that stay until the test ends and say too little, or nonsense.
func misuse(t *testing.T, address string) {
	t.Helper()
	noise := make([]byte, 64<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	const preface = http2.ClientPreface
	for i := range 1200 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		var text string
		switch i % 6 {
		case 1:
			text = preface[:1+i%23]
		case 2:
			text = preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		case 3:
			text = preface + "\x00\x10\x00\x01\x00\x00\x00\x00\x01half"
		case 4:
			text = "GET /ready HTTP/1.1\r\nX: "
		case 5:
			text = string(noise[:i])
		}
		_, _ = io.WriteString(c, text) // which may fail: the server has hung up
	}
}

// TestLimitsOfOnePort: what clients of xDS may cost, and who they are, is on a shared port as on
// one of its own, and pages don't count.
func TestLimitsOfOnePort(t *testing.T) {
	t.Parallel()
	g := guardOn(t, mesh.StartShared, tokenSet, map[string]string{"resources/all.yaml": tokenResources}, "--authPlaintext",
		"--maxConnectionsPerPeer", "4", "--idleTimeout", "5s", "--maxHeaderBytes", "8192")

	// Who shows nothing, or what is wrong, is refused as on the port of its own; a token lets in.
	g.refuses("", codes.Unauthenticated)
	g.refuses("wrong", codes.Unauthenticated)
	if _, _, err := g.open(webToken); err != nil {
		t.Error(err)
	}
	_ = g.conn.Close()

	// Connections of one peer are counted, pages beside them are not.
	var held []*grpc.ClientConn
	dial := func() (*grpc.ClientConn, error) {
		conn, err := grpc.NewClient(g.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		return conn, err
	}
	wait.For(t, "four connections are let in", func() error {
		conn, err := dial()
		if err != nil {
			return err
		}
		if held = append(held, conn); len(held) < 4 {
			return fmt.Errorf("%d are", len(held))
		}
		return nil
	})
	if _, err := dial(); status.Code(err) != codes.Unavailable {
		t.Errorf("a fifth connection: %v", err)
	}
	by := browser(t, true)
	for range 3 {
		if _, err := get(by, g.HTTP, "/ready"); err != nil {
			t.Error(err)
		}
		if _, err := g.Get("/ready"); err != nil {
			t.Error(err)
		}
	}
	for _, c := range held {
		_ = c.Close()
	}

	// Headers that are too long are refused with words, connections without a stream end in time.
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-long", strings.Repeat("x", 9000))
	wait.For(t, "long headers are refused", func() error {
		conn, err := grpc.NewClient(g.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		if err == nil || !strings.Contains(err.Error(), "maxHeaderBytes is 8192") {
			return fmt.Errorf("the answer is %v", err)
		}
		return nil
	})
	quiet, err := net.Dial("tcp", g.XDS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = quiet.Close() }()
	_ = quiet.SetReadDeadline(time.Now().Add(wait.Deadline))
	if _, err := io.WriteString(quiet, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, quiet); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a connection without a stream stays open")
	}

	// A client that pings too often is sent away.
	pinging, err := net.Dial("tcp", g.XDS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pinging.Close() }()
	_ = pinging.SetDeadline(time.Now().Add(wait.Deadline))
	frames := http2.NewFramer(pinging, pinging)
	_, err = io.WriteString(pinging, http2.ClientPreface)
	if err := errors.Join(err, frames.WriteSettings()); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		_ = frames.WritePing(false, [8]byte{1}) // which may fail: the server has hung up
	}
	for {
		f, err := frames.ReadFrame()
		if err != nil {
			t.Fatalf("it ended without a word: %v", err)
		}
		if away, ok := f.(*http2.GoAwayFrame); ok {
			if away.ErrCode != http2.ErrCodeEnhanceYourCalm {
				t.Errorf("it was sent away with %v", away.ErrCode)
			}
			break
		}
	}
}

// TestOnePortHung: who asks for pages and reads nothing, and streams that say nothing, don't hold
// up each other; both end when the control plane does.
func TestOnePortHung(t *testing.T) {
	t.Parallel()
	g := guardOn(t, mesh.StartShared, tokenSet, map[string]string{"resources/all.yaml": tokenResources})
	for range 8 {
		c, err := net.Dial("tcp", g.HTTP)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := io.WriteString(c, strings.Repeat("GET /debug/pprof/goroutine?debug=2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 50)); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		if _, _, err := g.open(""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Get("/ready"); err != nil {
		t.Error(err)
	}
	began := time.Now()
	if code := g.Stop(t); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	t.Logf("it ended after %v", time.Since(began).Round(time.Millisecond))
	if _, err := net.Dial("tcp", g.HTTP); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the port is still open: %v", err)
	}
}

// TestNoPlainText: with --grpcAddr none there is no xDS in plain text, on no port.
func TestNoPlainText(t *testing.T) {
	t.Parallel()
	p := mesh.Start(t, program, t.TempDir(), "--grpcAddr", "none")
	p.Ready(t)
	conn, err := grpc.NewClient(p.HTTP, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("the HTTP port answers %v", err)
	}
	if _, err := net.Dial("tcp", p.XDS); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the port is open: %v", err)
	}
}
