package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// mostExplaining is how many questions what a resource was made from wait for answers.
const mostExplaining = 64

// silence is how long a plugin that did not explain is not asked again.
const silence = time.Minute

// explaining is a question what a resource was made from.
type explaining struct {
	by     *state.Session
	answer chan *pb.Because
}

// Explain asks a generator's session what a resource of a view was made from; it sets the
// question's id. A plugin need not answer (docs/contract.md, Explain): ctx says how long it is
// waited for, and a plugin that stays silent is not blamed.
func (q *Calls) Explain(ctx context.Context, s *state.Session, m *pb.Explain) (*pb.Because, error) {
	answer := make(chan *pb.Because, 1)
	if err := q.poseExplain(s, m, answer); err != nil {
		return nil, err
	}
	defer func() {
		q.lock.Lock()
		defer q.lock.Unlock()
		delete(q.explaining, m.Id)
	}()
	select {
	case because := <-answer:
		if because == nil {
			return nil, fmt.Errorf("plugin %s ended while it was asked", s.Name())
		}
		if because.Error != "" {
			return nil, fmt.Errorf("plugin %s says: %s", s.Name(), because.Error)
		}
		return because, nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			q.lock.Lock()
			q.silent[s] = q.state.Clock.Now().Add(silence)
			q.lock.Unlock()
		}
		return nil, fmt.Errorf("plugin %s does not say: %w", s.Name(), context.Cause(ctx))
	}
}

func (q *Calls) poseExplain(s *state.Session, m *pb.Explain, answer chan *pb.Because) error {
	q.lock.Lock()
	defer q.lock.Unlock()
	switch {
	case q.state.Roster.Session(s.Name()) != s:
		return fmt.Errorf("plugin %s is away", s.Name())
	case q.state.Clock.Now().Before(q.silent[s]):
		return fmt.Errorf("plugin %s does not say: it has not answered such a question", s.Name())
	case len(q.explaining) >= mostExplaining:
		return errors.New("too many questions wait for answers already; try again")
	}
	q.asked++
	m.Id = q.asked
	q.explaining[m.Id] = explaining{s, answer}
	s.Out.Call(&pb.FromCore{Explain: m})
	return nil
}

// HandleBecause takes an answer, under the lock. One that nobody waits for harms nobody.
func (q *Calls) HandleBecause(s *state.Session, m *pb.Because) {
	e, ok := q.explaining[m.Id]
	if !ok || e.by != s {
		q.state.Metrics.Unknown(s.Name(), "answer", 1)
		return
	}
	delete(q.explaining, m.Id)
	e.answer <- m
}
