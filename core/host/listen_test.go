package host

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestSockets: what an entry listens on stays open until it asks for something else, or is gone.
func TestSockets(t *testing.T) {
	one, two := manifest.Listen("udp://"+wait.Address(t)), manifest.Listen("tcp://"+wait.Address(t))
	var s sockets
	defer s.close()
	get := func(name string, of ...manifest.Listen) ([]*os.File, error) {
		all, err := s.of(&manifest.Entry{Name: name, Listen: of})
		var files []*os.File
		for _, x := range all {
			files = append(files, x.File)
		}
		return files, err
	}
	free := func(l manifest.Listen) bool {
		if l.Network() == "tcp" {
			c, err := net.Listen("tcp", l.Address())
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		}
		c, err := net.ListenPacket("udp", l.Address())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	first, err := get("a", one, two)
	if err != nil || len(first) != 2 {
		t.Fatal(first, err)
	}
	if again, err := get("a", one, two); err != nil || again[0] != first[0] || again[1] != first[1] {
		t.Errorf("the next process has others: %v", err)
	}
	if _, err := get("b", one); err == nil || !strings.Contains(err.Error(), "listen (") || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("what another one has: %v", err)
	}
	if left, err := get("a", one); err != nil || left[0] != first[0] || !free(two) || free(one) {
		t.Errorf("one that is no longer asked for: %v, %v", left, err)
	}
	if none, err := get("c"); err != nil || none != nil {
		t.Error(none, err)
	}
	if s.forget("a"); !free(one) {
		t.Error("an entry that has gone listens")
	}
}
