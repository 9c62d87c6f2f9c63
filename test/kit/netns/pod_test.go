package netns_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/netns"
)

func TestPods(t *testing.T) {
	a, b := netns.NewPod(t, "a", "10.244.0.1"), netns.NewPod(t, "b", "10.244.0.2")
	netns.Link(t, a, b)
	l := b.Listen(t, "10.244.0.2:80")
	defer func() { _ = l.Close() }()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.WriteString(c, c.RemoteAddr().String())
			_ = c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := a.Dial(ctx, "tcp", "10.244.0.2:80")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	seen, err := io.ReadAll(c)
	if err != nil || string(seen) != c.LocalAddr().String() {
		t.Errorf("b sees %s, want %s: %v", seen, c.LocalAddr(), err)
	}
}
