package sdk

import (
	"context"
	"errors"
	"slices"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Call is a unary call of gRPC that came to one of the core's xDS ports, or that the core makes, or
// a request of HTTP that came to its webhook port.
type Call struct {
	// Method is the full name, `/package.Service/Method`; of a webhook `POST ` and the path with
	// its query.
	Method string
	// Request is the encoded message, or the body, of 8 MiB at most.
	Request []byte
	// Identities are those of the caller, verified by an authenticator; none where the core itself
	// calls.
	Identities    []string
	RemoteAddress string
	// Core: the core itself calls.
	Core bool
	// Facts are what else the authenticator has verified of the caller (Caller.Facts).
	Facts map[string]string
}

// CallHandler is an optional extra of controllers: it answers calls of gRPC, of callers whom an
// authenticator knows, and webhooks, of whoever can reach the webhook port.
type CallHandler interface {
	// Methods returns the full names of the methods that it answers, `/package.Service/Method`, and
	// the webhooks, `POST /path`, to which what is below the path belongs, too. It is called once,
	// before Ready.
	Methods() []string
	// Call returns the encoded response. An error that is or wraps a *CallError is told to the
	// caller; of any other it is told that the call failed, and the log has the error. It is called
	// by several goroutines at once, beside Run; ctx ends with the core's limits.call, and a later
	// answer is none.
	Call(ctx context.Context, c Call) ([]byte, error)
}

// Reader is an optional extra of controllers: what they read depends on their config.
type Reader interface {
	// Reads returns tables that it wants in its State besides those of the declaration. It is
	// called once, before Ready.
	Reads() []string
}

// CallError is why a call fails.
type CallError struct {
	// Code is a status code of gRPC, such as 3 for InvalidArgument and 7 for PermissionDenied.
	Code uint32
	// Message is told to the caller: there must be no secret in it.
	Message string
}

// Error implements error.
func (e *CallError) Error() string { return e.Message }

// codeInternal is gRPC's code for what is the server's fault, codeUnimplemented that for methods
// that it doesn't have, and codeUnavailable for what may be tried again.
const (
	codeUnimplemented = 12
	codeInternal      = 13
	codeUnavailable   = 14
)

// callee answers what is asked of a CallHandler. It is an interface, so that only programs with
// controllers have the code.
type callee interface {
	methods() []string
	receive(ctx context.Context, m *pb.Call, release func())
	end()
}

// handling answers for a controller's CallHandler: calls at once, each with its deadline. The core
// bounds how many there are.
type handling struct {
	*pluginSession
	handler CallHandler
	// offered is what Methods said.
	offered []string

	mu    sync.Mutex
	ended bool // no more calls begin
	calls sync.WaitGroup
	// partial are calls of which not all has come, by their numbers.
	partial map[uint64]*pb.Call
	// ending ends calls.
	ending context.Context
	stop   context.CancelFunc
}

// newController runs a controller, and answers calls where it is a CallHandler.
func newController(ps *pluginSession, c Controller) *source {
	s := newSource(ps, pb.KindController, c.Run)
	s.blamed, _ = c.(Blamed)
	ps.told.large.feeds = true
	if w, ok := c.(ClientWatcher); ok {
		s.clients = watching{w}
	}
	if r, ok := c.(Reader); ok {
		s.more = r.Reads()
	}
	if h, ok := c.(CallHandler); ok {
		calls := &handling{pluginSession: ps, handler: h, offered: h.Methods()}
		calls.ending, calls.stop = context.WithCancel(context.Background())
		s.calls = calls
	}
	return s
}

func (h *handling) methods() []string { return h.offered }

func (h *handling) receive(ctx context.Context, m *pb.Call, release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m = h.whole(m); h.ended || m == nil {
		release()
		return
	}
	h.calls.Go(func() {
		defer release()
		h.call(ctx, m)
	})
}

// Bounds of calls that come in parts: how many there may be, and how large one may be.
const mostPartial, mostRequest = 64, 9 << 20

// whole puts the parts of a call together; nil: there is more to come. What is too large is cut
// off, so that it can't be read.
func (h *handling) whole(m *pb.Call) *pb.Call {
	first := h.partial[m.Id]
	switch {
	case first == nil && !m.More:
		return m
	case first == nil:
		if len(h.partial) < mostPartial {
			if h.partial == nil {
				h.partial = map[uint64]*pb.Call{}
			}
			h.partial[m.Id] = m
		}
		return nil
	}
	if len(first.Request)+len(m.Request) <= mostRequest {
		first.Request = append(first.Request, m.Request...)
	}
	if m.More {
		return nil
	}
	delete(h.partial, m.Id)
	first.More = false
	return first
}

// end ends the calls that there are, and waits for them.
func (h *handling) end() {
	h.stop()
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.calls.Wait()
}

func (h *handling) call(ctx context.Context, m *pb.Call) {
	limited, cancel := h.deadline(ctx)
	defer cancel()
	defer context.AfterFunc(h.ending, cancel)()
	called := &pb.Called{}
	err := caught("Call", func() (err error) {
		if !slices.ContainsFunc(h.offered, func(offered string) bool { return pb.Answers(offered, m.Method) }) {
			return &CallError{codeUnimplemented, "the plugin " + h.plugin.Name + " doesn't answer this method"}
		}
		called.Response, err = h.handler.Call(limited, Call{
			Method: m.Method, Request: m.Request, Identities: m.Identities, RemoteAddress: m.RemoteAddress, Core: m.Core, Facts: m.Facts,
		})
		return err
	})
	if err != nil {
		called = h.failed(ctx, m.Method, err, late(limited))
	}
	called.Id = m.Id
	h.answer(ctx, &pb.FromPlugin{Called: called}, func(reason string) *pb.FromPlugin {
		return &pb.FromPlugin{Called: &pb.Called{Id: m.Id, Code: codeInternal, Message: reason}}
	})
}

// failed is the answer for an error. What is not meant for the caller is the operator's affair.
func (h *handling) failed(ctx context.Context, method string, err error, late bool) *pb.Called {
	var told *CallError
	switch {
	case errors.As(err, &told) && told.Code != 0:
		return &pb.Called{Code: told.Code, Message: told.Message}
	case late:
		return &pb.Called{Code: codeUnavailable, Message: noAnswer}
	}
	h.log(ctx, Error, "a call failed", "method", method, "error", err)
	return &pb.Called{Code: codeInternal, Message: "the call failed; the control plane's log says why"}
}
