package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// recorder is a Publisher that hands on what it gets.
type recorder struct {
	updates chan []*sdk.Row
	synced  chan struct{}
}

func (r *recorder) Update(table string, upserts []*sdk.Row, _ []string) error {
	if table == kinds.VirtualService {
		r.updates <- upserts
	}
	return nil
}

func (r *recorder) Synced() error { close(r.synced); return nil }

func (r *recorder) State() (*state.State, <-chan struct{}) { return nil, nil }

func (r *recorder) Log(sdk.Level, string, ...any) {}

// One changed file among many costs one read and one parse, from the event on.
func TestEventCostsOneRead(t *testing.T) {
	const many = 200
	dir := t.TempDir()
	l := files(t, dir, many, 1)
	s := New(Config{Dir: dir, Settle: time.Millisecond, MaxFile: defaults().MaxFile})
	w, err := watch.New(s.config.Settle, s.concerns)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	out := &recorder{updates: make(chan []*sdk.Row, 10), synced: make(chan struct{})}
	r := newRun(l.config, w, out)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.run(ctx) }()
	<-out.synced
	if first := <-out.updates; len(first) != many {
		t.Errorf("%d rows at first", len(first))
	}
	swap(t, filepath.Join(dir, "7.yaml"), route("r7-0", "two"))
	if got := routes(keyed(<-out.updates)); got != "r7-0=two" {
		t.Errorf("published %s", got)
	}
	cancel()
	<-ended
	if want := (work{many + 1, many + 1}); r.cache.work != want {
		t.Errorf("did %+v, want %+v", r.cache.work, want)
	}
}

// swap writes a file as careful programs do.
func swap(t testing.TB, path, content string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), ".next")
	if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// service is a VirtualService of usual size: 40 lines.
func service(name string, weight int) string {
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: %[1]s
  namespace: shop
  labels:
    app: %[1]s
spec:
  hosts:
  - %[1]s.shop.svc.cluster.local
  http:
  - name: canary
    match:
    - headers:
        x-canary:
          exact: "true"
      uri:
        prefix: /api
    route:
    - destination:
        host: %[1]s.shop.svc.cluster.local
        subset: v2
        port:
          number: 8080
    timeout: 2s
    retries:
      attempts: 3
      perTryTimeout: 500ms
      retryOn: 5xx,reset
  - route:
    - destination:
        host: %[1]s.shop.svc.cluster.local
        subset: v1
      weight: %[2]d
    - destination:
        host: %[1]s.shop.svc.cluster.local
        subset: v2
      weight: %[3]d
`, name, weight, 100-weight)
}

// mesh writes 10,000 VirtualServices into files of so many each.
func mesh(b *testing.B, per int) string {
	b.Helper()
	const all = 10_000
	dir := b.TempDir()
	for i := range all / per {
		var texts []string
		for j := range per {
			texts = append(texts, service(fmt.Sprintf("s%d-%d", i, j), 90))
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(path, []byte(strings.Join(texts, "---\n")), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// cpu reports processor time per operation.
func cpu(b *testing.B, run func()) {
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	run()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(spent)/float64(b.N)/1e6, "cpu-ms/op")
}

func BenchmarkLoad10000(b *testing.B) {
	for _, per := range []int{1, 10, 10_000} {
		b.Run(fmt.Sprintf("%d-per-file", per), func(b *testing.B) {
			dir := mesh(b, per)
			b.ReportAllocs()
			cpu(b, func() {
				for b.Loop() {
					l := newCache(Config{Dir: dir, Settle: time.Millisecond, MaxFile: defaults().MaxFile}, func(sdk.Level, string, ...any) {})
					if ch := compareAll(b, l); len(ch.Upserts[kinds.VirtualService]) != 10_000 {
						b.Fatal("rows are missing")
					}
				}
			})
		})
	}
}

func BenchmarkOneEditOf10000(b *testing.B) {
	for _, per := range []int{1, 10, 10_000} {
		b.Run(fmt.Sprintf("%d-per-file", per), func(b *testing.B) {
			dir := mesh(b, per)
			l := newCache(Config{Dir: dir, Settle: time.Millisecond, MaxFile: defaults().MaxFile}, func(sdk.Level, string, ...any) {})
			compareAll(b, l)
			path := filepath.Join(dir, "0.yaml")
			content, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			rest := strings.TrimPrefix(string(content), service("s0-0", 90))
			b.ReportAllocs()
			weight := 0
			cpu(b, func() {
				for b.Loop() {
					weight = (weight + 1) % 90
					swap(b, path, service("s0-0", weight)+rest)
					l.read([]string{path}, time.Now())
					if ch := l.catalog.Changes(); len(ch.Upserts[kinds.VirtualService]) != 1 {
						b.Fatal("no change")
					}
				}
			})
		})
	}
}
