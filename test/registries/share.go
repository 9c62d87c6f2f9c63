package registries

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// Web is an instance of the service web, one of several.
func Web(n int) Instance {
	return Instance{Service: "web", ID: fmt.Sprintf("web-%d", n), Address: fmt.Sprintf("10.0.0.%d", n), Port: 80, Weight: 1}
}

// Each does something with all, 16 at once.
func Each[T any](t testing.TB, all []T, do func(T) error) {
	t.Helper()
	var working sync.WaitGroup
	places := make(chan struct{}, 16)
	for _, one := range all {
		places <- struct{}{}
		working.Go(func() {
			defer func() { <-places }()
			if err := do(one); err != nil {
				t.Error(err)
			}
		})
	}
	working.Wait()
}

// Watch fails, once its result is called, if the service web had other endpoints than these at any
// time. has returns those that it has.
func Watch(t *testing.T, has func() []string, want []string) (end func()) {
	t.Helper()
	done, lost := make(chan struct{}), make(chan []string, 1)
	go func() {
		defer close(lost)
		for {
			if got := has(); !slices.Equal(got, want) {
				lost <- got
				return
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-done:
				return
			}
		}
	}()
	return func() {
		t.Helper()
		close(done)
		if got, ok := <-lost; ok {
			t.Errorf("meanwhile web had %v", got)
		}
	}
}

// Tail keeps the last of what a program writes.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps the last of the text. It never fails.
func (l *Tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text = append(l.text, p...); len(l.text) > 16<<10 {
		l.text = bytes.Clone(l.text[len(l.text)-8<<10:])
	}
	return len(p), nil
}

// String returns what is kept.
func (l *Tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
