package inject

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// filesSet injects by settings that files have, and has no API server.
const filesSet = `plugins:
- {name: ca, kind: controller, builtin: controller/ca, config: {keep: memory, distribute: nowhere}}
- name: injector
  kind: controller
  builtin: controller/injector
  config: {from: files, configFile: inject.yaml, nativeSidecars: "true"}
`

// manyAtOnce is how many reviews the flood has on their way: many times as many as a plugin has in
// hand of one address.
const manyAtOnce = 400

// TestFloodOfReviews: while one address asks for hundreds of reviews at once, again and again, each
// review of another one is answered; what the flood asks for is answered or refused, and never
// hangs.
func TestFloodOfReviews(t *testing.T) {
	dir, at := t.TempDir(), wait.Address(t)
	for name, text := range map[string]string{"plugins.yaml": filesSet, "inject.yaml": "policy: enabled\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := mesh.Start(t, binary, "", "--plugins", filepath.Join(dir, "plugins.yaml"), "--httpsAddr", at)
	p.Ready(t)
	body := review{namespace: "shop", pod: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}},
	}}.body(t)
	quiet, loud := from(t, "127.0.0.1"), from(t, "127.0.0.2")
	ask := func(by *http.Client) (code int, err error) {
		said, err := by.Post("https://"+at+"/inject?timeout=10s", "application/json", bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		defer func() { _ = said.Body.Close() }()
		text, err := io.ReadAll(said.Body)
		if err == nil && said.StatusCode == http.StatusOK && !bytes.Contains(text, []byte(`"patch":`)) {
			err = fmt.Errorf("no proxy is injected: %.300s", text)
		}
		return said.StatusCode, err
	}
	wait.For(t, "a review is answered", func() error {
		code, err := ask(quiet)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("it is answered %d", code)
		}
		return err
	})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var flood sync.WaitGroup
	var began, answered atomic.Int64
	for range manyAtOnce {
		flood.Go(func() {
			for ctx.Err() == nil {
				began.Add(1)
				switch code, err := ask(loud); {
				case err != nil:
					t.Errorf("of the flood: %v", err)
					return
				case code == http.StatusOK:
					answered.Add(1)
				case code != http.StatusServiceUnavailable && code != http.StatusGatewayTimeout:
					t.Errorf("of the flood one is answered %d", code)
					return
				}
			}
		})
	}
	wait.For(t, "the flood is there", func() error {
		if n := began.Load(); n < 2*manyAtOnce {
			return fmt.Errorf("%d of it began", n)
		}
		return nil
	})
	before := began.Load()
	for n := range 100 {
		if code, err := ask(quiet); err != nil || code != http.StatusOK {
			t.Errorf("beside the flood, the %d. review: %d, %v", n, code, err)
		}
	}
	if began.Load() == before {
		t.Error("there was no flood meanwhile")
	}
	cancel()
	flood.Wait()
	if answered.Load() == 0 {
		t.Error("the flood was never answered")
	}
}

// from returns a client that asks from an address of this machine. Who isn't answered in 30 s
// hangs.
func from(t *testing.T, address string) *http.Client {
	t.Helper()
	transport := &http.Transport{
		DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: manyAtOnce,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Timeout: 30 * time.Second, Transport: transport}
}
