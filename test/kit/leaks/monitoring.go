package leaks

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/page"
)

// Monitoring are the metrics of a control plane's monitoring port, and the first event that it
// tells those who look at its page.
func Monitoring(t testing.TB, address string) map[string][]byte {
	t.Helper()
	metrics, err := page.Get(address, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	event, err := firstEvent(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"/metrics of " + address: []byte(metrics), "/ui/events": event}
}

func firstEvent(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ui/events", http.NoBody)
	if err != nil {
		return nil, err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Body.Close() }()
	const most = 1 << 20
	for lines := bufio.NewReader(io.LimitReader(a.Body, most)); ; {
		line, err := lines.ReadString('\n')
		switch {
		case strings.HasPrefix(line, "data: "):
			return []byte(line), nil
		case err != nil:
			return nil, fmt.Errorf("/ui/events tells nothing: %w", err)
		}
	}
}
