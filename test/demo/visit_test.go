package demo

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const patience = 2 * time.Minute

// try does what the demo says one may try.
func try(said, _, dir string) error {
	gateway, err := address(said, "gateway ")
	if err != nil {
		return err
	}
	const requests, deviation = 400, 8.0
	from, err := ask(gateway, requests)
	if err != nil || math.Abs(float64(from["v1"])-0.8*requests) > 5*deviation || from["v1"]+from["v2"] != requests {
		return fmt.Errorf("of %d requests 80 %% are for v1: %v %v", requests, from, err)
	}
	sidecar, err := address(said, "client's sidecar ")
	if err != nil {
		return err
	}
	if from, err := ask(sidecar, 10); err != nil {
		return fmt.Errorf("at the sidecar: %v %v", from, err)
	}
	routes := filepath.Join(dir, "config", "routes.yaml")
	text, err := os.ReadFile(routes)
	if err != nil {
		return err
	}
	all := strings.NewReplacer("weight: 80", "weight: 0", "weight: 20", "weight: 100").Replace(string(text))
	if err := os.WriteFile(routes, []byte(all), 0o600); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		from, err := ask(gateway, 30)
		if err == nil && from["v2"] == 30 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not all goes to v2: %v %v", from, err)
		}
	}
}

// address is the one behind words at the beginning of a line.
func address(said, words string) (string, error) {
	for line := range strings.Lines(said) {
		if rest, ok := strings.CutPrefix(line, words); ok {
			_, rest, _ = strings.Cut(rest, "http://")
			at, _, _ := strings.Cut(rest, ",")
			return at, nil
		}
	}
	return "", fmt.Errorf("it doesn't say where its %s is", words)
}

// ask counts by version who answers requests for the demo's service, whose answers have the header
// that the patch adds.
func ask(at string, requests int) (map[string]int, error) {
	from := map[string]int{}
	for range requests {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+at+"/", nil)
		if err != nil {
			return from, err
		}
		r.Host = "hello.example"
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return from, err
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("x-patched-by") != "coxswain" {
			return from, fmt.Errorf("status %s, header %v, %s %v", answer.Status, answer.Header, body, err)
		}
		version, _, _ := strings.Cut(strings.TrimPrefix(string(body), "hello from "), ",")
		from[version]++
	}
	return from, nil
}

// gone makes sure that nothing listens any more where the demo said that something does.
func gone(said string) error {
	for _, words := range []string{"gateway ", "client's sidecar "} {
		at, err := address(said, words)
		if err != nil {
			return err
		}
		if c, err := net.Dial("tcp", at); err == nil {
			_ = c.Close()
			return fmt.Errorf("something still listens at %s", at)
		}
	}
	return nil
}
