package calls

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxCallError is how many bytes of what a plugin says to a caller are told.
const maxCallError = 1000

// Call has a unary call of gRPC answered by the plugin that offers its method (pb.Ready's Methods).
// It sets the call's id. The error is a gRPC status: Unimplemented if nobody offers the method,
// Unavailable if the plugin is away or did not answer within limits.call, otherwise what the plugin
// says.
func (q *Calls) Call(ctx context.Context, m *pb.Call) (response []byte, err error) {
	q.lock.Lock()
	k := q.state.Roster.Callee(m.Method)
	q.lock.Unlock()
	if k == nil {
		return nil, status.Errorf(codes.Unimplemented, "no plugin offers %s", budget.Line(m.Method, maxCallError))
	}
	answer, silence := q.inTurn(ctx, k, m)
	switch {
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	case errors.Is(silence, errNoTurn):
		return nil, status.Errorf(codes.ResourceExhausted, "plugin %s %v", k.Name(), silence)
	case answer == nil:
		return nil, status.Errorf(codes.Unavailable, "plugin %s %v", k.Name(), silence)
	case answer.Called.Code != 0:
		return nil, status.Error(codes.Code(answer.Called.Code), budget.Line(answer.Called.Message, maxCallError))
	}
	return answer.Called.Response, nil
}

// inTurn asks a plugin when it is the caller's turn, by the caller's verified identities, or by its
// address where it has none; the core itself waits for nobody.
// Who waits is bounded by ctx, not by limits.call.
func (q *Calls) inTurn(ctx context.Context, k *state.Plugin, m *pb.Call) (answer *pb.FromPlugin, silence error) {
	leave, size := func() {}, m.Size()
	if !m.Core {
		var err error
		waits, cancel := waiting(ctx, m.Method)
		defer cancel()
		if leave, err = q.turn(waits, k.Name(), cmp.Or(strings.Join(m.Identities, " "), budget.Address(m.RemoteAddress)), size); err != nil {
			return nil, errNoTurn
		}
	}
	put := false
	defer func() {
		if !put {
			leave()
		}
	}()
	find := q.served(k.Name())
	return q.ask(ctx, k.Asked(), q.awaken(k.Name(), find), find, size, func(id uint64) []*pb.FromCore {
		put = true
		q.leave[id] = leave
		m.Id = id
		return parts(m)
	})
}

// errNoTurn is why a call is not answered that has waited for its turn for as long as it may.
var errNoTurn = errors.New("had others to answer for all of that time")

// reserve is which part of the time that a webhook's caller waits is left for the answer: what has
// its turn later would be answered too late, and those after it, too.
const reserve = 4

// waiting returns a ctx that ends when a call waits for its turn no more.
func waiting(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok || !strings.HasPrefix(method, pb.Webhook) {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end.Add(-time.Until(end)/reserve))
}

// partBytes is how much of a request is in one message, which has room for all else of a call.
const partBytes = 512 << 10

// parts are the messages of a call: of a webhook, whose request may be larger than a message, as
// many as it takes.
func parts(m *pb.Call) (all []*pb.FromCore) {
	if len(m.Request) <= partBytes || !strings.HasPrefix(m.Method, pb.Webhook) {
		return []*pb.FromCore{{Call: m}}
	}
	part := *m
	for rest := m.Request; len(rest) > 0; {
		n := min(len(rest), partBytes)
		one := part
		one.Request, rest = rest[:n], rest[n:]
		one.More = len(rest) > 0
		all = append(all, &pb.FromCore{Call: &one})
		part = pb.Call{Id: m.Id}
	}
	return all
}

// Offers reports whether some plugin offers the method and, if not, whether one may yet that is
// waited for: a controller that starts always, and has not said what it offers.
func (q *Calls) Offers(method string) (yes, perhaps bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	yes = q.state.Roster.Callee(method) != nil
	for _, k := range q.state.Roster.Plugins {
		perhaps = perhaps || k.Kind().Answers() && k.Ready == nil && !k.Expected.OnDemand && !k.Expected.Optional
	}
	return yes, perhaps
}

// tooLarge answers a call that does not fit into a message.
func tooLarge(id uint64, reason string) *pb.Called {
	return &pb.Called{Id: id, Code: uint32(codes.ResourceExhausted), Message: reason}
}
