package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/coxswain-mesh/coxswain/sdk/peer"
)

// errStranger is that a plugin's socket isn't the plugin's.
var errStranger = errors.New("its socket is not its own")

// dialer connects to the socket that a plugin announced, if it is one in the directory that it was
// given, on which its own processes listen.
type dialer struct {
	child   *child
	address net.Addr
	// dir is where its socket must be.
	dir string
	// refused is why a connection was not made.
	refused atomic.Pointer[error]
}

// refusal is why a connection was not made, nil if none was refused.
func (d *dialer) refusal() error {
	if err := d.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// check reports whether an announced address may be the plugin's.
func (d *dialer) check() error {
	if d.address.Network() != "unix" {
		return fmt.Errorf("%w: it announced %s %s, and the contract wants a Unix socket in PLUGIN_UNIX_SOCKET_DIR",
			errStranger, d.address.Network(), d.address)
	}
	if !strings.HasPrefix(filepath.Clean(d.address.String()), filepath.Clean(d.dir)+string(filepath.Separator)) {
		return fmt.Errorf("%w: it announced %s, which is not in PLUGIN_UNIX_SOCKET_DIR (%s)", errStranger, d.address, d.dir)
	}
	return nil
}

// dial is for gRPC.
func (d *dialer) dial(ctx context.Context, _ string) (net.Conn, error) {
	if err := d.check(); err != nil {
		d.refused.Store(&err)
		return nil, err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, d.address.Network(), d.address.String())
	if err != nil {
		return nil, err
	}
	if err := d.own(c); err != nil {
		if errors.Is(err, errStranger) {
			d.refused.Store(&err)
		}
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// own refuses a connection to a process that is neither the plugin nor of its process group, or
// that runs as another user. Where the kernel doesn't say who listens, the directory, which only
// this user may enter, is what there is.
func (d *dialer) own(c net.Conn) error {
	who, known := peer.Of(c)
	if !known {
		return nil
	}
	if who.UID != d.child.uid() {
		return fmt.Errorf("%w: user %d listens on %s", errStranger, who.UID, d.address)
	}
	group, err := syscall.Getpgid(who.PID)
	if errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d, which listened on %s, has ended", who.PID, d.address)
	}
	if err != nil || group != d.child.PID() {
		return fmt.Errorf("%w: process %d listens on %s, which is not of the plugin's process group", errStranger, who.PID, d.address)
	}
	return nil
}
