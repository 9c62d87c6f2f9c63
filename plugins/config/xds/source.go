package xds

import (
	"context"
	"math/rand/v2"
	"regexp"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	told "github.com/coxswain-mesh/coxswain/plugins/internal/said"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// source is a server's Istio resources.
type source struct{ config Config }

// Run asks the server for all types and follows them until ctx ends. A connection that ends changes
// nothing; another one is made.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	conn, err := s.config.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	c := &client{
		config: s.config, conn: conn, log: out.Log, publication: newPublication(ctx, s.config, out, validation.New()),
		pace: rate.NewLimiter(rate.Limit(s.config.Limits.Answers), 2*s.config.Limits.Answers), missed: time.NewTimer(s.config.Wait),
	}
	defer c.missed.Stop()
	for tries := 0; ctx.Err() == nil; tries++ {
		began := time.Now()
		if err := c.try(ctx); err != nil {
			return err
		}
		if time.Since(began) > c.config.MaxRetry {
			tries = 0
		}
		if err := c.pause(ctx, delay(tries, firstRetry, c.config.MaxRetry)); err != nil {
			return err
		}
	}
	return nil
}

// firstRetry is the first pause between two tries.
const firstRetry = 100 * time.Millisecond

// delay is twice as long each time, to a limit, less up to a half by chance: clients don't come
// back all at once.
func delay(tries int, first, most time.Duration) time.Duration {
	d := most
	if tries < 20 {
		d = min(most, first<<tries)
	}
	return d/2 + rand.N(d/2+1)
}

// client asks a server.
type client struct {
	config      Config
	conn        *grpc.ClientConn
	log         func(level sdk.Level, text string, args ...any)
	publication *publication
	// pace is how many answers are read.
	pace *rate.Limiter
	// missed rings when answers could be in.
	missed *time.Timer
	// said is what was logged of the connection's end, at a time.
	said   string
	saidAt time.Time
}

// pause waits. The error is the publisher's.
func (c *client) pause(ctx context.Context, d time.Duration) error {
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-over.C:
			return nil
		case <-c.missed.C:
			if err := c.publication.missed(); err != nil {
				return err
			}
		}
	}
}

// try connects and follows the server until that ends. The error is the publisher's.
func (c *client) try(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	token, err := c.config.token()
	if err == nil {
		s := newStream(c, token)
		defer s.running.Wait()
		defer cancel()
		var failed error
		if failed, err = s.follow(ctx); failed != nil {
			return failed
		}
	}
	if ctx.Err() != nil || err == nil {
		return nil
	}
	return c.lost(reason(err, token))
}

// lost says why a connection has ended: once a minute, where the reason is the same.
func (c *client) lost(why string) error {
	if now := time.Now(); len(c.publication.heard) > 0 && (why != c.said || now.Sub(c.saidAt) > time.Minute) {
		c.said, c.saidAt = why, now
		c.log(sdk.Info, "the connection to the server has ended; what is known stays, and another one is made", "server", c.config.host(), "reason", why)
	}
	return c.publication.lost(why)
}

// reason is an error in one line, without the token, which a server might repeat.
func reason(err error, token string) string {
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Code().String() + ": " + s.Message()
	}
	return own.ReplaceAllString(told.Line(told.Hide(text, token), 500), "")
}

// own is the client's side of a connection, which is another one each time.
var own = regexp.MustCompile(`[0-9.]+:[0-9]+->|\[[0-9a-f:]+\]:[0-9]+->`)
