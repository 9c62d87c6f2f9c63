// Package mutual runs examples/mutual by `make mutual`, as a user does, and calls its workloads.
package mutual

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/makerun"
)

var demo = makerun.Demo{Target: "mutual", Variable: "MUTUAL_DIR", During: call, Steps: []string{
	"Ctrl-C stops everything.", "stopping",
}}

func TestMain(m *testing.M) {
	demo.Main()
	os.Exit(m.Run())
}

// TestMutual: the client calls web by mutual TLS, and plain text gets nowhere.
func TestMutual(t *testing.T) { demo.Run(t) }

func call(string, string, string) error {
	client := http.Client{Timeout: 5 * time.Second}
	get := func(url string) (string, error) {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			return "", err
		}
		r.Host = "web.shop"
		answer, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		return fmt.Sprintf("%d %s", answer.StatusCode, text), err
	}
	if said, err := get("http://127.0.0.1:7180"); err != nil || said != "200 web is called by spiffe://cluster.local/ns/shop/sa/client\n" {
		return fmt.Errorf("web says %q, %v", said, err)
	}
	if said, err := get("http://127.0.0.1:7443"); err == nil {
		return fmt.Errorf("plain text is answered: %q", said)
	}
	return nil
}
