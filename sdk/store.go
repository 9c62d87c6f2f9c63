package sdk

import (
	"context"
	"errors"
	"sync"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Objects are the objects of config tables where they are kept. An object is JSON text as
// Kubernetes has it, whole: apiVersion, kind, metadata, spec, status, and whatever else the store
// gave. What is read, changed and given back loses nothing: labels, finalizers, owner references
// and fields that nobody knows survive. Methods that return an object return it as the store has it
// now. Errors are a *StoreError or wrap one; CodeOf tells them apart. All methods may be called by
// several goroutines.
type Objects interface {
	// Get returns an object.
	Get(ctx context.Context, table, namespace, name string) ([]byte, error)
	// List returns objects of a namespace, or of all if it is empty: those of one page. p.Page is
	// empty for the first page, and after that what the call before returned as next, which is
	// empty after the last page.
	List(ctx context.Context, table, namespace string, p Page) (objects [][]byte, next string, err error)
	// Create makes an object that must not be there yet. Its status is left out where a kind has
	// one of its own.
	Create(ctx context.Context, table string, object []byte) ([]byte, error)
	// Update takes all of the object but its status: what is not in it goes. The object's
	// metadata.resourceVersion must be the one that the store has.
	Update(ctx context.Context, table string, object []byte) ([]byte, error)
	// UpdateStatus takes the object's status and nothing else of it. The object's
	// metadata.resourceVersion must be the one that the store has.
	UpdateStatus(ctx context.Context, table string, object []byte) ([]byte, error)
	// Patch changes what a JSON merge patch (RFC 7386) names, but for the status. If version is not
	// empty, the object must have that resourceVersion.
	Patch(ctx context.Context, table, namespace, name string, patch []byte, version string) ([]byte, error)
	// Delete deletes an object. If version is not empty, the object must have that resourceVersion.
	// One with finalizers stays until these are gone.
	Delete(ctx context.Context, table, namespace, name, version string) error
}

// Page says which part of a list is wanted.
type Page struct {
	// Page is what List returned as next; empty: the first.
	Page string
	// Limit is how many objects it has at most; 0: as many as the store likes.
	Limit int
}

// Store is an optional extra of config sources: it writes where its objects are kept. Its methods
// are called by several goroutines at once, beside Run; ctx ends with the core's limits.call, and a
// later answer is none. What was written is published by Run as any other change is.
type Store interface {
	Objects
	// Writes returns the tables that it takes writes of, whether it publishes them or not; none: it
	// takes no writes. It is called once, before Ready.
	Writes() []string
}

// StoreCode says what kind of error a StoreError is.
type StoreCode = pb.Code

// Codes of errors.
const (
	StoreNotFound      = pb.CodeNotFound
	StoreAlreadyExists = pb.CodeAlreadyExists
	// StoreConflict: the object has another version by now, or a list has changed too much to be
	// gone on with: read again.
	StoreConflict = pb.CodeConflict
	StoreInvalid  = pb.CodeInvalid
	// StoreUnsupported: nobody writes the table, more than one plugin does, or its writer can't do
	// this.
	StoreUnsupported = pb.CodeUnsupported
	// StoreForbidden: the plugin's entry does not grant it the table (allow.store), or the writer's
	// account may not do it.
	StoreForbidden = pb.CodeForbidden
	// StoreUnavailable and StoreDeadline: try again later; a change may have been made.
	StoreUnavailable = pb.CodeUnavailable
	StoreDeadline    = pb.CodeDeadline
)

// StoreError is why a store did not do what it was asked.
type StoreError struct {
	Code StoreCode
	// Field is the field at fault of an invalid object, such as `spec.hosts[0]`; empty where it is
	// no single field's.
	Field  string
	Reason string
}

// Error implements error.
func (e *StoreError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// CodeOf returns the code of an error of Objects; 0 for nil, StoreDeadline for a ctx that ended,
// and StoreUnavailable for any other error.
func CodeOf(err error) StoreCode {
	var e *StoreError
	switch {
	case err == nil:
		return pb.CodeOk
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return StoreDeadline
	}
	return StoreUnavailable
}

// ObjectsOf returns the objects of all config tables that some plugin writes, by way of the core,
// given the Publisher of a plugin's Run. The plugin's entry must be granted the tables
// (allow.store). A Publisher that is not the SDK's has none: then each call fails as unsupported.
func ObjectsOf(out Publisher) Objects {
	if p, ok := out.(interface{ objects() Objects }); ok {
		return p.objects()
	}
	return asker(func(context.Context, *pb.Store) (*pb.Stored, error) {
		return nil, &StoreError{Code: StoreUnsupported, Reason: "this Publisher leads to no store"}
	})
}

func (p *publisher) objects() Objects {
	return asker(func(ctx context.Context, m *pb.Store) (*pb.Stored, error) {
		select {
		case p.source.stores <- struct{}{}:
			defer func() { <-p.source.stores }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		answer, err := p.source.ask(ctx, func(id uint64) *pb.FromPlugin {
			m.Id = id
			return &pb.FromPlugin{Store: m}
		})
		switch {
		case errors.Is(err, session.ErrTooLarge):
			return nil, &StoreError{Code: StoreInvalid, Reason: err.Error()}
		case err != nil:
			return nil, err
		case answer.Stored.Code != pb.CodeOk:
			return nil, &StoreError{Code: answer.Stored.Code, Field: answer.Stored.Field, Reason: answer.Stored.Error}
		}
		return answer.Stored, nil
	})
}

// asker makes Objects of a function that asks one question.
type asker func(context.Context, *pb.Store) (*pb.Stored, error)

func (a asker) one(ctx context.Context, m *pb.Store) ([]byte, error) {
	answer, err := a(ctx, m)
	if err != nil {
		return nil, err
	}
	return answer.Object, nil
}

func (a asker) Get(ctx context.Context, table, namespace, name string) ([]byte, error) {
	return a.one(ctx, &pb.Store{Verb: pb.VerbGet, Table: table, Namespace: namespace, Name: name})
}

func (a asker) List(ctx context.Context, table, namespace string, p Page) ([][]byte, string, error) {
	answer, err := a(ctx, &pb.Store{Verb: pb.VerbList, Table: table, Namespace: namespace, Page: p.Page, Limit: uint32(max(p.Limit, 0))})
	if err != nil {
		return nil, "", err
	}
	return answer.Objects, answer.Page, nil
}

func (a asker) Create(ctx context.Context, table string, object []byte) ([]byte, error) {
	return a.one(ctx, &pb.Store{Verb: pb.VerbCreate, Table: table, Object: object})
}

func (a asker) Update(ctx context.Context, table string, object []byte) ([]byte, error) {
	return a.one(ctx, &pb.Store{Verb: pb.VerbUpdate, Table: table, Object: object})
}

func (a asker) UpdateStatus(ctx context.Context, table string, object []byte) ([]byte, error) {
	return a.one(ctx, &pb.Store{Verb: pb.VerbUpdateStatus, Table: table, Object: object})
}

func (a asker) Patch(ctx context.Context, table, namespace, name string, patch []byte, version string) ([]byte, error) {
	return a.one(ctx, &pb.Store{Verb: pb.VerbPatch, Table: table, Namespace: namespace, Name: name, Object: patch, Version: version})
}

func (a asker) Delete(ctx context.Context, table, namespace, name, version string) error {
	_, err := a(ctx, &pb.Store{Verb: pb.VerbDelete, Table: table, Namespace: namespace, Name: name, Version: version})
	return err
}

// storing answers for a config source's Store: calls at once, each with its deadline. The core
// bounds how many there are.
type storing struct {
	*pluginSession
	store Store
	// ending ends calls.
	ending context.Context
	stop   context.CancelFunc

	mu    sync.Mutex
	ended bool // no more calls begin
	calls sync.WaitGroup
}

func newStoring(ps *pluginSession, store Store) *storing {
	s := &storing{pluginSession: ps, store: store}
	s.ending, s.stop = context.WithCancel(context.Background())
	return s
}

func (s *storing) writes() []string { return s.store.Writes() }

// receive begins a call.
func (s *storing) receive(ctx context.Context, m *pb.Store, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		release()
		return
	}
	s.calls.Go(func() {
		defer release()
		s.call(ctx, m)
	})
}

// end ends the calls that there are, and waits for them.
func (s *storing) end() {
	s.stop()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.calls.Wait()
}

func (s *storing) call(ctx context.Context, m *pb.Store) {
	limited, cancel := s.deadline(ctx)
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	var answer *pb.Stored
	err := caught("Store", func() (err error) {
		answer, err = s.do(limited, m)
		return err
	})
	if err != nil {
		answer = s.failed(ctx, m, err)
	}
	answer.Id = m.Id
	s.answer(ctx, &pb.FromPlugin{Stored: answer}, func(reason string) *pb.FromPlugin {
		return &pb.FromPlugin{Stored: &pb.Stored{Id: m.Id, Code: StoreInvalid, Error: reason}}
	})
}

// failed is the answer for an error. Where the author's code panicked is the operator's affair.
func (s *storing) failed(ctx context.Context, m *pb.Store, err error) *pb.Stored {
	answer := &pb.Stored{Code: CodeOf(err), Error: err.Error()}
	var e *StoreError
	if errors.As(err, &e) {
		answer.Field, answer.Error = e.Field, e.Reason
	}
	var p *PanicError
	if errors.As(err, &p) {
		s.log(ctx, Error, "the plugin panicked", "table", m.Table, "error", err)
		answer.Error = "the plugin panicked"
	}
	return answer
}

func (s *storing) do(ctx context.Context, m *pb.Store) (answer *pb.Stored, err error) {
	answer = &pb.Stored{}
	switch m.Verb {
	case pb.VerbGet:
		answer.Object, err = s.store.Get(ctx, m.Table, m.Namespace, m.Name)
	case pb.VerbList:
		answer.Objects, answer.Page, err = s.list(ctx, m)
	case pb.VerbCreate:
		answer.Object, err = s.store.Create(ctx, m.Table, m.Object)
	case pb.VerbUpdate:
		answer.Object, err = s.store.Update(ctx, m.Table, m.Object)
	case pb.VerbUpdateStatus:
		answer.Object, err = s.store.UpdateStatus(ctx, m.Table, m.Object)
	case pb.VerbPatch:
		answer.Object, err = s.store.Patch(ctx, m.Table, m.Namespace, m.Name, m.Object, m.Version)
	case pb.VerbDelete:
		err = s.store.Delete(ctx, m.Table, m.Namespace, m.Name, m.Version)
	default:
		err = &StoreError{Code: StoreUnsupported, Reason: text.Of("this plugin knows no verb ", uint64(m.Verb))}
	}
	return answer, err
}

// mostListed is how many objects a page has where nobody says.
const mostListed = 500

// list returns a page that fits into a message: what is too large is asked for again in smaller
// pages.
func (s *storing) list(ctx context.Context, m *pb.Store) ([][]byte, string, error) {
	limit := mostListed
	if m.Limit > 0 {
		limit = int(min(m.Limit, mostListed))
	}
	for ; ; limit = max(limit/4, 1) {
		objects, next, err := s.store.List(ctx, m.Table, m.Namespace, Page{Page: m.Page, Limit: limit})
		size := len(next)
		for _, o := range objects {
			size += len(o) + 8
		}
		if err != nil || size <= s.room() || len(objects) < 2 {
			return objects, next, err
		}
		if limit == 1 {
			return nil, "", &StoreError{Code: StoreUnsupported, Reason: text.Of("the store gives ", len(objects), " objects where one was wanted")}
		}
	}
}
