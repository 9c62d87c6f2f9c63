package inject

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// usualPatience is how long a caller waits who doesn't say. Source: docs/contract.md.
const usualPatience = 10 * time.Second

// TestInjectorDies: while reviews are asked all the time the injector is killed, hangs and goes on,
// and is swapped. Each is answered before its caller waits no more, by a patch or by a status for
// which an API server does what the failure policy says; a swap fails none, and all are answered by
// a patch afterwards.
func TestInjectorDies(t *testing.T) {
	dir, at := t.TempDir(), wait.Address(t)
	for name, text := range map[string]string{"plugins.yaml": filesSet, "inject.yaml": "policy: enabled\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := mesh.Start(t, binary, "", "--plugins", filepath.Join(dir, "plugins.yaml"), "--httpsAddr", at)
	p.Ready(t)
	r := &patient{by: from(t, "127.0.0.1"), url: "https://" + at + "/inject", body: podReview(t, "shop", nil, nil)}
	back := func(after string) {
		t.Helper()
		wait.For(t, "a review is answered "+after, func() error {
			code, _, err := r.ask(promptly)
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("it is answered %d", code)
			}
			return err
		})
	}
	back("at first")

	during := r.asked(t, promptly)
	p.Signal(t, "injector", syscall.SIGKILL)
	back("after it was killed")
	during.ends(t, "it is killed")

	// One that hangs is stopped for as long as it takes to see that nobody waits for it.
	during = r.asked(t, promptly)
	hung := p.Signal(t, "injector", syscall.SIGSTOP)
	t.Cleanup(func() { _ = syscall.Kill(hung.PID, syscall.SIGCONT) })
	code, took, err := r.ask(0)
	if err != nil || code == http.StatusOK || took >= usualPatience {
		t.Errorf("who doesn't say how long he waits is answered %d after %v: %v", code, took, err)
	}
	wait.For(t, "others hear that it hangs", func() error {
		if n := during.failed(); n < 3 {
			return fmt.Errorf("%d did", n)
		}
		return nil
	})
	if err := syscall.Kill(hung.PID, syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	back("after it hung")
	during.ends(t, "it hangs")

	during = r.asked(t, promptly)
	before := during.count()
	if out, err := exec.Command(binary, "plugins", "restart", "injector", "--addr", p.HTTP).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	wait.For(t, "reviews are asked after the swap", func() error {
		if n := during.count() - before; n < 20 {
			return fmt.Errorf("%d were", n)
		}
		return nil
	})
	if failed := during.ends(t, "it is swapped"); failed > 0 {
		t.Errorf("while it was swapped %d reviews were not answered", failed)
	}
}

// patient asks for the same review, and says how long it waits.
type patient struct {
	by   *http.Client
	url  string
	body []byte
}

// ask asks once, for as long as is said; 0: nothing is said.
func (r *patient) ask(waits time.Duration) (code int, took time.Duration, err error) {
	url := r.url
	if waits > 0 {
		url += "?timeout=" + waits.String()
	}
	began := time.Now()
	said, err := r.by.Post(url, "application/json", bytes.NewReader(r.body))
	if err != nil {
		return 0, time.Since(began), err
	}
	defer func() { _ = said.Body.Close() }()
	text, err := io.ReadAll(said.Body)
	if err == nil && said.StatusCode == http.StatusOK && !bytes.Contains(text, []byte(`"patch":`)) {
		err = fmt.Errorf("no proxy is injected: %.300s", text)
	}
	return said.StatusCode, time.Since(began), err
}

// asking are askers.
type asking struct {
	stop  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	codes map[int]int
	long  time.Duration
	wrong []string
}

// asked begins to ask from four askers, who wait so long.
func (r *patient) asked(t *testing.T, waits time.Duration) *asking {
	t.Helper()
	a := &asking{stop: make(chan struct{}), codes: map[int]int{}}
	t.Cleanup(a.end)
	for range 4 {
		a.ended.Go(func() {
			for {
				select {
				case <-a.stop:
					return
				default:
				}
				code, took, err := r.ask(waits)
				a.mu.Lock()
				a.codes[code]++
				a.long = max(a.long, took)
				if err != nil || took >= waits {
					a.wrong = append(a.wrong, fmt.Sprintf("%d after %v: %v", code, took, err))
				}
				a.mu.Unlock()
			}
		})
	}
	return a
}

func (a *asking) end() {
	a.mu.Lock()
	select {
	case <-a.stop:
	default:
		close(a.stop)
	}
	a.mu.Unlock()
	a.ended.Wait()
}

// count is how many were answered, failed how many of these otherwise than by a patch.
func (a *asking) count() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, each := range a.codes {
		n += each
	}
	return n
}

func (a *asking) failed() int {
	n := a.count()
	a.mu.Lock()
	defer a.mu.Unlock()
	return n - a.codes[http.StatusOK]
}

// ends ends asking, and returns how many failed.
func (a *asking) ends(t *testing.T, what string) int {
	t.Helper()
	a.end()
	if len(a.wrong) > 0 {
		t.Errorf("while %s, %d were not answered in time: %.5q", what, len(a.wrong), a.wrong)
	}
	t.Logf("while %s: answers %v, the longest after %v", what, a.codes, a.long)
	return a.failed()
}
