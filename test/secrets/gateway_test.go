package secrets

import (
	"context"
	"encoding/base64"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestGateway: a gateway whose secret is missing serves the rest at once; HTTPS begins to be served
// when the secret comes, a new certificate fails no request, and one that is broken or deleted
// leaves what there was.
func TestGateway(t *testing.T) {
	for _, protocol := range []string{"delta", "sotw"} {
		t.Run(protocol, func(t *testing.T) {
			http, https := wait.Port(t), wait.Port(t)
			w := newWorld(t, map[string]string{
				"gateway.yaml": fill(gateway, "NAMESPACE", "edge", "HTTPPORT", fmt.Sprint(http), "HTTPSPORT", fmt.Sprint(https)),
			})
			begun := time.Now()
			e := w.gateway(t, "edge", "web", protocol)
			e.Ready(t)
			wait.For(t, "plain HTTP is served", func() error { return plain(http) })
			took := time.Since(begun)
			t.Logf("%s: plain HTTP is served after %v", protocol, took)
			if took > 10*time.Second { // Envoy waits 15 s for what nobody answers
				t.Errorf("plain HTTP was served after %v", took)
			}
			w.says(t, "kubernetes://web", "there is no Secret edge/web")
			w.shows(t, "there is no Secret edge/web", "plugins")
			w.shows(t, "(IST0101)", "analyze", "--live")
			const named = "gateway.yaml:2:1: Gateway edge/gateway: error: secret kubernetes://web for proxies of edge/web: "
			w.shows(t, named+"there is no Secret edge/web", "config")

			first := w.pair(t, "first")
			file := filepath.Join(w.dir, "secret.yaml")
			put(t, file, first.secret("edge", "web"))
			c := first.client(t, https, false)
			c.shows(t, first)

			if text, _ := w.run("analyze", "--live"); strings.Contains(text, "IST0101") {
				t.Errorf("the secret is there, and coxswain analyze says %s", text)
			}
			w.silent(t, "secret kubernetes://web", "config")
			stop := traffic(t, c, first.client(t, https, true))
			second := w.pair(t, "second")
			put(t, file, second.secret("edge", "web"))
			c.shows(t, second)
			put(t, file, pair{first.chain, second.key, nil}.secret("edge", "web"))
			w.says(t, "secret.yaml", "tls.key is not the key of the first certificate in tls.crt")
			w.shows(t, "tls.key is not the key of the first certificate in tls.crt", "config")
			c.shows(t, second)
			put(t, file, "# nothing\n")
			w.says(t, "kubernetes://web", "there is no Secret edge/web")
			c.shows(t, second)
			third := w.pair(t, "third")
			put(t, file, third.secret("edge", "web"))
			c.shows(t, third)
			stop()
			// Nobody can tell a client of the state of the world that there is no secret.
			happy(t, e, protocol != "delta" || took > patience)
		})
	}
}

// patience is how long a gateway without an agent waits for what it was not told of.
const patience = 2 * time.Second

// happy wants a proxy to have refused nothing, and to have waited in vain for nothing, unless it
// may have for one thing.
func happy(t *testing.T, e *envoy.Envoy, waited bool) {
	t.Helper()
	for _, line := range e.Unhappy(t) {
		if !waited || !strings.Contains(line, "init_fetch_timeout = 1") {
			t.Error(line)
		}
	}
}

// run runs the program on the control plane.
func (w *world) run(args ...string) (string, error) {
	out, err := exec.Command(program, append(args, "--addr", w.plane.HTTP)...).CombinedOutput()
	return string(out), err
}

// shows waits until a command says something.
func (w *world) shows(t *testing.T, what string, args ...string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("coxswain %q says %s", args, what), func() error {
		text, err := w.run(args...)
		if !strings.Contains(text, what) {
			return fmt.Errorf("%v: %s", err, text)
		}
		return nil
	})
}

// silent waits until a command does not say something.
func (w *world) silent(t *testing.T, what string, args ...string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("coxswain %q doesn't say %s", args, what), func() error {
		text, err := w.run(args...)
		if err != nil || strings.Contains(text, what) {
			return fmt.Errorf("%v: %s", err, text)
		}
		return nil
	})
}

// says waits until some line of the log has all words.
func (w *world) says(t *testing.T, words ...string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("the log says %q", words), func() error {
	lines:
		for line := range strings.Lines(w.plane.Log()) {
			for _, word := range words {
				if !strings.Contains(line, word) {
					continue lines
				}
			}
			return nil
		}
		return fmt.Errorf("it does not")
	})
}

// traffic asks all the time until it is stopped; no request may fail.
func traffic(t *testing.T, clients ...client) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			asked := 0
			for ; ctx.Err() == nil; asked++ {
				if _, err := c.ask(); err != nil {
					t.Errorf("request %d: %v", asked, err)
					return
				}
			}
			t.Logf("%d requests", asked)
			if asked == 0 {
				t.Error("no request was made")
			}
		})
	}
	t.Cleanup(func() { cancel(); all.Wait() })
	return func() { cancel(); all.Wait() }
}

// TestOthers: proxies of another namespace, of another account, and nobody's get nothing of a
// secret that isn't theirs.
func TestOthers(t *testing.T) {
	http, https := wait.Port(t), wait.Port(t)
	text := func(namespace string, http, https int) string {
		return fill(gateway, "NAMESPACE", namespace, "HTTPPORT", fmt.Sprint(http), "HTTPSPORT", fmt.Sprint(https))
	}
	w := newWorld(t, map[string]string{
		"edge.yaml":  text("edge", http, https),
		"other.yaml": strings.ReplaceAll(text("other", wait.Port(t), wait.Port(t)), "credentialName: web", "credentialName: kubernetes://edge/web"),
	})
	web := w.pair(t, "web-server")
	put(t, filepath.Join(w.dir, "secret.yaml"), web.secret("edge", "web"))
	own, other := w.gateway(t, "edge", "web", "delta"), w.gateway(t, "other", "web", "delta")
	own.Ready(t)
	other.Ready(t)
	web.client(t, https, false).shows(t, web)
	w.says(t, "kubernetes://edge/web", "secrets are for their own namespace's proxies")
	before := other.Stats(t)["listener_manager.lds.update_success"]
	next := w.pair(t, "next-server")
	put(t, filepath.Join(w.dir, "secret.yaml"), next.secret("edge", "web"))
	next.client(t, https, false).shows(t, next)
	stats := other.Stats(t)
	if n := stats["sds.kubernetes_//edge/web.update_success"]; n > 1 { // that there is none is one
		t.Errorf("the other one's secret was updated %d times", n)
	}
	if stats["listener_manager.lds.update_success"] != before {
		t.Error("the other one was sent listeners")
	}
	shown := base64.StdEncoding.EncodeToString(next.chain)
	if !strings.Contains(own.ConfigDump(t), shown) {
		t.Error("the owner's dump has not got the certificate: this test can't see it")
	}
	if strings.Contains(other.ConfigDump(t), shown) {
		t.Error("the other one has the certificate")
	}
}
