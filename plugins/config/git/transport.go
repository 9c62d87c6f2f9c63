package git

import (
	"context"
	"fmt"
	"net"
	nethttp "net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport/client"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

// install has the library use transports of ours for http and https: it has one for all
// repositories, so that what is allowed comes with a question's context.
var install = sync.OnceFunc(func() {
	t := nethttp.DefaultTransport.(*nethttp.Transport).Clone()
	// Each question has a connection of its own, by which no more comes than it may, and nothing
	// comes out of that but what came in: an answer that unpacks itself has no bound.
	t.DisableKeepAlives, t.DisableCompression, t.DialContext, t.MaxResponseHeaderBytes = true, true, dial, 64<<10
	c := http.NewClient(&nethttp.Client{Transport: t})
	client.InstallProtocol("http", c)
	client.InstallProtocol("https", c)
})

// allowed is what a question may cost, and where it may lead: a value of its context.
type allowed struct {
	bytes int64
	// host is the repository's.
	host string
}

type allowedKey struct{}

// beside is what comes beside a commit's objects: references, headers, what secures the connection.
const beside = 16 << 20

// allow returns a context for questions about a repository.
func allow(ctx context.Context, c Config) context.Context {
	install()
	a := allowed{bytes: c.Limits.Bytes + beside}
	if u, err := url.Parse(c.Repository); err == nil {
		a.host = u.Hostname()
	}
	return context.WithValue(ctx, allowedKey{}, a)
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	a, _ := ctx.Value(allowedKey{}).(allowed)
	d := &net.Dialer{Timeout: 30 * time.Second, Control: a.admits}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &boundedConn{Conn: c, left: a.bytes}, nil
}

// admits refuses addresses of the link itself, to which a server could lead, unless the repository
// is there. Source: RFC 3927; RFC 4291, section 2.5.6.
func (a allowed) admits(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); ip.IsLinkLocalUnicast() && ip.WithZone("").String() != a.host {
		return fmt.Errorf("%s is a link-local address, which the repository is not at", ip)
	}
	return nil
}

// boundedConn is a connection by which so much may come.
type boundedConn struct {
	net.Conn
	left int64
}

func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, fmt.Errorf("the server says more than limits.bytes and %d bytes beside", int64(beside))
	}
	return n, err
}
