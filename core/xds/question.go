package xds

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// Question is a request for a type that is answered per request: from what is so at that moment,
// and never again by itself.
type Question struct {
	Type  string
	Names []string
	// Identities of who asks, verified.
	Identities []string
}

// Answerer answers questions. Its methods may be called by any goroutine.
type Answerer interface {
	// Answers reports whether a type is answered per request.
	Answers(typeURL string) bool
	// Answer returns the resources. An error, a gRPC status, ends the stream.
	Answer(Question) ([]*view.Body, error)
}

// asked is the last question of a type.
type asked struct {
	nonce string
	names []string
}

// reply is an answer, or why there is none.
type reply struct {
	typeURL   string
	resources []*view.Body
	err       error
}

// question returns what a request asks; false if it only acknowledges an answer. The first of a
// type on a stream can acknowledge nothing, whatever nonce it has: some clients begin with one of
// their own.
func (st *stream) question(r request) (q Question, ok bool) {
	q = Question{Type: r.typeURL(), Identities: st.identities}
	last, again := st.questions[q.Type]
	nonce := r.sotw.GetResponseNonce()
	if q.Names = r.sotw.GetResourceNames(); r.delta != nil {
		q.Names, nonce = r.delta.ResourceNamesSubscribe, r.delta.ResponseNonce
		return q, !again || nonce == "" || len(q.Names) > 0
	}
	return q, !again || nonce == "" || nonce == last.nonce && !slices.Equal(q.Names, last.names)
}

// answer looks for the answer to a question, apart from the stream, which goes on: what is asked
// may be about this very stream.
func (st *stream) answer(r request) error {
	q, ok := st.question(r)
	if !ok {
		return nil
	}
	if err := st.server.config.Limits.Stream.CheckQuestions(st.posed + len(st.answered) + 1); err != nil {
		return err
	}
	st.posed++
	st.questions[q.Type] = asked{names: q.Names}
	st.endpoint.wg.Go(func() {
		resources, err := st.server.config.Answerer.Answer(q)
		select {
		case st.replies <- reply{q.Type, resources, err}:
		case <-st.done:
		}
	})
	return nil
}

// reply makes a response of an answer, for the stream's next turn.
func (st *stream) reply(a reply) error {
	st.posed--
	if a.err != nil {
		return a.err
	}
	nonce := st.respond(a.typeURL, a.resources)
	st.questions[a.typeURL] = asked{nonce, st.questions[a.typeURL].names}
	return nil
}

// respond makes a response apart from what the stream has subscribed to, for its next turn, and
// returns its nonce.
func (st *stream) respond(typeURL string, resources []*view.Body) (nonce string) {
	r := &response{
		delta: st.delta, typeURL: typeURL, resources: resources, version: versionOf(resources),
		identifier: st.machine.common.identifier, nonce: st.machine.nextNonce(),
	}
	st.answered = append(st.answered, r)
	st.want(answers)
	return r.nonce
}
