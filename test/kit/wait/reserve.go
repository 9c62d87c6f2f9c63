package wait

import (
	"fmt"
	"net"
	"sync"
)

// reserved are this process's ports: each is an abstract Unix socket (Linux), so that nobody else
// has it, and whoever ends gives it back.
var (
	reserving sync.Mutex
	reserved  = map[int]net.Listener{}
)

// reserve takes a port for this process, unless a test here or in another process has it.
func reserve(port int) bool {
	reserving.Lock()
	defer reserving.Unlock()
	if reserved[port] != nil {
		return false
	}
	l, err := net.Listen("unix", fmt.Sprintf("@coxswain-test-port-%d", port))
	if err != nil {
		return false
	}
	reserved[port] = l
	return true
}
