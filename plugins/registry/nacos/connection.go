package nacos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/plugins/internal/said"
)

// connection is one to a server: requests with answers, and a stream by which the server asks and
// tells.
//
// gRPC makes a connection of its own anew when it is lost, but the server knows those alone that
// were set up: so the end of the stream is the end of it.
type connection struct {
	config *Config
	login  *login
	server server
	grpc   *grpc.ClientConn
	stream grpc.ClientStream
	local  *atomic.Value
	// heard are services that the server told of. It is closed at the end, for which why says the
	// reason.
	heard   chan *serviceInfo
	why     error
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// errMoved says that the server wants its client to go to another one.
var errMoved = errors.New("the server wants this client elsewhere, as one that ends")

// connect opens one; ctx ends it, and so does close.
func connect(ctx context.Context, c *Config, s server, l *login, namespace string) (*connection, error) {
	out := &connection{config: c, login: l, server: s, local: &atomic.Value{}, heard: make(chan *serviceInfo, 4)}
	security := insecure.NewCredentials()
	if c.TLS != nil {
		setup, err := c.TLS.Config() // read anew, so that roots may be renewed
		if err != nil {
			return nil, err
		}
		security = credentials.NewTLS(setup)
	}
	var err error
	out.grpc, err = grpc.NewClient("passthrough:///"+s.grpc,
		grpc.WithTransportCredentials(security), grpc.WithContextDialer(out.dial), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}), grpc.MaxCallRecvMsgSize(c.Limits.MessageBytes)))
	if err != nil {
		return nil, err
	}
	ctx, out.cancel = context.WithCancel(ctx)
	if err := out.setUp(ctx, namespace); err != nil {
		out.cancel()
		_ = out.grpc.Close()
		return nil, err
	}
	out.running.Go(func() { out.listen(ctx) })
	return out, nil
}

func (c *connection) dial(ctx context.Context, address string) (net.Conn, error) {
	made, err := (&net.Dialer{Timeout: c.config.Timeout}).DialContext(ctx, "tcp", address)
	if err == nil {
		ip, _, _ := net.SplitHostPort(made.LocalAddr().String())
		c.local.Store(ip)
	}
	return made, err
}

// setUp tells the server who is there, and waits until it knows.
func (c *connection) setUp(ctx context.Context, namespace string) error {
	if err := c.ask(ctx, serverCheck, map[string]any{"module": "internal"}, &reply{}); err != nil {
		return err
	}
	var err error
	both := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	if c.stream, err = c.grpc.NewStream(ctx, both, streamMethod); err != nil {
		return plain(err)
	}
	err = c.send(setup, map[string]any{
		"module": "internal", "clientVersion": "Coxswain", "tenant": namespace,
		"labels": map[string]string{"source": "sdk", "module": "naming", "AppName": "coxswain"},
	})
	if err != nil {
		return err
	}
	for began := time.Now(); ; { // the server says nothing; what it is asked before it knows the connection, it refuses
		err := c.beat(ctx)
		no := (*refusal)(nil)
		if !errors.As(err, &no) || no.code != unregistered || time.Since(began) > c.config.Timeout {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// beat asks for a sign of life.
func (c *connection) beat(ctx context.Context) error {
	return c.ask(ctx, healthCheck, map[string]any{"module": "internal"}, &reply{})
}

// ask asks, and reads the answer.
func (c *connection) ask(ctx context.Context, kind string, request map[string]any, answer interface{ refused() error }) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	for again := false; ; again = true {
		p, err := c.payload(kind, request)
		if err != nil {
			return err
		}
		token := ""
		if kind == serviceList || kind == subscribe {
			if token, err = c.login.token(ctx, c.server); err != nil {
				return err
			}
			if token != "" {
				p.headers = map[string]string{"accessToken": token}
			}
		}
		var got payload
		if err := c.grpc.Invoke(ctx, requestMethod, p, &got); err != nil {
			if status.Code(err) == codes.ResourceExhausted { // so is an answer that is too large
				return &refusal{tooLarge, "limits.messageBytes: " + plain(err).Error()}
			}
			return said.HideIn(plain(err), token)
		}
		err = read(got.body, answer)
		no := (*refusal)(nil)
		if errors.As(err, &no) {
			no.text = said.Hide(no.text, token)
		}
		if again || !errors.As(err, &no) || no.code != forbidden || !c.login.forget(token) {
			return err
		}
	}
}

// payload makes a message.
func (c *connection) payload(kind string, body any) (*payload, error) {
	text, err := json.Marshal(body)
	local, _ := c.local.Load().(string)
	return &payload{kind: kind, clientIP: local, body: text}, err
}

func (c *connection) send(kind string, body any) error {
	p, err := c.payload(kind, body)
	if err == nil {
		err = c.stream.SendMsg(p)
	}
	return plain(err)
}

// plain is an error of gRPC without its own words around it.
func plain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if _, rest, ok := strings.Cut(text, " desc = "); ok {
		text = rest
	}
	return errors.New(text)
}

// listen takes what the server says, and answers it, until the stream ends.
func (c *connection) listen(ctx context.Context) {
	defer close(c.heard)
	for {
		var p payload
		if err := c.stream.RecvMsg(&p); err != nil {
			c.why = fmt.Errorf("the connection ended: %w", plain(err))
			return
		}
		var said pushed
		if err := json.Unmarshal(p.body, &said); err != nil {
			c.why = fmt.Errorf("what the server says can't be read (%s): %w", p.kind, err)
			return
		}
		if p.kind == connectReset {
			c.why = errMoved
			return
		}
		if p.kind == notify && said.Service != nil {
			select {
			case c.heard <- said.Service:
			case <-ctx.Done():
				c.why = ctx.Err()
				return
			}
		}
		if before, ok := strings.CutSuffix(p.kind, "Request"); ok {
			done := map[string]any{"resultCode": 200, "success": true, "requestId": string(said.ID)}
			if err := c.send(before+"Response", done); err != nil {
				c.why = err
				return
			}
		}
	}
}

// close ends the connection, and waits for that.
func (c *connection) close() {
	c.cancel()
	_ = c.grpc.Close()
	c.running.Wait()
}
