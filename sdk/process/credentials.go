//go:build !wasip1

package process

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/coxswain-mesh/coxswain/sdk/peer"
)

// coreAlone takes connections from the core that started this process, and from nobody else. It is
// for sockets without TLS; with it the core's certificate, whose key no other process has, says the
// same.
type coreAlone struct {
	credentials.TransportCredentials
	// pid of the core; 0: unknown.
	pid int
}

// newCoreAlone reads which process the core is.
func newCoreAlone() credentials.TransportCredentials {
	pid, _ := strconv.Atoi(os.Getenv(CoreEnv))
	return coreAlone{insecure.NewCredentials(), pid}
}

// ServerHandshake refuses strangers. A PID of 0 is that of a process in a PID namespace around this
// one: a core that starts plugins in namespaces of their own is told by its user alone.
func (a coreAlone) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	who, known := peer.Of(c)
	switch {
	case !known:
	case who.UID != 0 && who.UID != os.Geteuid(), who.PID != 0 && a.pid != 0 && who.PID != a.pid:
		_ = c.Close()
		return nil, nil, fmt.Errorf("process %d of user %d is not the core", who.PID, who.UID)
	}
	return a.TransportCredentials.ServerHandshake(c)
}

// Clone is what gRPC asks for.
func (a coreAlone) Clone() credentials.TransportCredentials {
	return coreAlone{a.TransportCredentials.Clone(), a.pid}
}
