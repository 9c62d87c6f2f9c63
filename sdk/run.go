package sdk

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// flushTimeout is how long the last words of a session may take.
const flushTimeout = 2 * time.Second

// Run runs a plugin over a carrier until the session ends: Serve without a process around it. It
// returns nil when the core drained the plugin or ended the session, or ctx ended; otherwise what
// went wrong: a config that was refused, an error of the plugin's Run, a breach of the contract.
// All goroutines that it started have ended then, but for author code that ignores its ctx.
func Run(ctx context.Context, d Declaration, carrier session.Carrier) error {
	link := session.NewPlugin(carrier)
	defer link.Close()
	hello, err := greet(ctx, link)
	if err != nil {
		return quiet(ctx, err)
	}
	ps := &pluginSession{plugin: d.declare(), link: link, hello: hello, stores: make(chan struct{}, session.MaxStores/2)}
	k, err := ps.construct()
	if err != nil {
		return errors.Join(err, ps.refuse(ctx, err))
	}
	if err := link.Send(ctx, &pb.FromPlugin{Ready: ps.ready(k)}); err != nil {
		return quiet(ctx, err)
	}
	return ps.serve(ctx, k)
}

// pluginSession is a session of a plugin.
type pluginSession struct {
	plugin *plugin
	link   *session.Plugin
	hello  *pb.Hello
	asked  questions
	told   told
	// stores bounds what is asked of stores at once; half of what may be, since an answer is here
	// before the core has noted that it was sent.
	stores chan struct{}
}

// told is what the core was told beside the plugin's work.
type told struct {
	// source is whether the source is away, large what was too large to be said.
	source reach
	large  large
}

// kind is what a plugin of some kind does with its session.
type kind interface {
	// receive takes a message, in order. It must not block: a slow author must not stop the reader.
	// It calls release when it has dealt with the message.
	receive(ctx context.Context, m *pb.FromCore, release func()) error
	// run works until ctx ends; it returns early only with an error.
	run(ctx context.Context) error
	proto() pb.Kind
}

func greet(ctx context.Context, link *session.Plugin) (*pb.Hello, error) {
	m, _, err := link.Recv(ctx)
	if err != nil {
		return nil, err
	}
	if m.Hello == nil {
		return nil, errors.New("the session did not begin with Hello")
	}
	return m.Hello, nil
}

// serve runs the plugin until the core drains it, the session ends or something fails.
func (ps *pluginSession) serve(ctx context.Context, k kind) error {
	ctx, stop := context.WithCancel(context.WithValue(ctx, sessionKey{}, ps))
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- caught(ps.plugin.Name, func() error { return k.run(ctx) }) }()
	read := make(chan error, 1)
	go func() { read <- ps.read(ctx, k) }()
	var err error
	select {
	case err = <-ran:
		stop()
		_ = ps.last(err)
		_ = ps.link.Close()
		<-read
	case err = <-read:
		stop()
		if err == nil {
			err = ps.drained(ctx, ran)
		} else {
			<-ran
		}
		_ = ps.last(nil)
	}
	return quiet(ctx, err)
}

// drained waits until the plugin has ended. What it asks as it ends is answered; all else is passed
// over.
func (ps *pluginSession) drained(ctx context.Context, ran <-chan error) error {
	asking, cease := context.WithCancel(context.WithoutCancel(ctx))
	ceased := make(chan struct{})
	go func() {
		defer close(ceased)
		for {
			m, cost, err := ps.link.Recv(asking)
			if err != nil {
				return
			}
			ps.asked.answer(m)
			ps.link.Release(cost)
		}
	}()
	err := <-ran
	cease()
	<-ceased
	return err
}

// read hands over messages until Drain, which is nil, or the session's end.
func (ps *pluginSession) read(ctx context.Context, k kind) error {
	for {
		m, cost, err := ps.link.Recv(ctx)
		switch {
		case err != nil:
			return err
		case m.Drain != nil:
			return nil
		}
		release := func() { ps.link.Release(cost) }
		if ps.asked.answer(m) {
			release()
			continue
		}
		if err := k.receive(ctx, m, release); err != nil {
			return err
		}
	}
}

// last says why the plugin ends, if it does so by itself, and sees that what it said arrives.
func (ps *pluginSession) last(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err != nil && !errors.Is(err, context.Canceled) {
		ps.log(ctx, Error, "the plugin ends", "error", err)
	}
	return ps.link.Flush(ctx)
}

// quiet turns the ordinary ends of a session into nil.
func quiet(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, session.ErrClosed):
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil
	}
	return err
}

// caught runs author code; a panic becomes an error with its stack.
func caught(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicError(what, r)
		}
	}()
	return f()
}

func (ps *pluginSession) refuse(ctx context.Context, reason error) error {
	refused := &pb.Refused{Reason: cutText(reason.Error(), ps.room()/2)}
	var field *FieldError
	if errors.As(reason, &field) {
		refused.Field, refused.Reason = cutText(field.Field, ps.room()/4), cutText(field.Err.Error(), ps.room()/2)
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := ps.link.Send(ctx, &pb.FromPlugin{Refused: refused}); err != nil {
		return text.Error("telling the core: ", err)
	}
	return ps.link.Flush(ctx)
}
