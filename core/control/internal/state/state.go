package state

import (
	"log/slog"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/seen"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// State is everything the core knows; all its parts share it.
type State struct {
	Log         *slog.Logger
	Metrics     Metrics
	Clock       *Clock
	Env         *environment.Environment
	Roster      *Roster
	Course      *Course
	Connections *Connections
	Instances   *Instances
	Journal     *Journal
	// Seen dates the rows whose sources don't.
	Seen *seen.Seen
}

// Config of a State.
type Config struct {
	Log     *slog.Logger
	Metrics Metrics
	Rules   Rules
	// Epoch is the start of the core that revisions belong to; After is the number of the last one
	// before it.
	Epoch, After uint64
	Timing       revision.Timing
	// Gather has the first revision wait until plugins that rows ask for are declared.
	Gather bool
	// Seen dates the rows whose sources don't; nil: it begins with knowing nothing.
	Seen *seen.Seen
	// Bounds are those of namespaces.
	Bounds environment.Bounds
	// Pushes says how they are followed: a Journal without any.
	Pushes Journal
	// Ring is called when somebody is to look at what is due.
	Ring func()
	// Wake is called when a plugin that sleeps is needed, Serving when what a plugin's session said
	// is being served.
	Wake, Serving func(plugin string)
}

// New returns one in which nobody is declared and nothing is served.
func New(cfg Config) *State {
	s := &State{
		Log: cfg.Log, Metrics: cfg.Metrics, Clock: &Clock{}, Env: environment.Bounded(cfg.After, cfg.Bounds),
		Course: &Course{
			Epoch: cfg.Epoch, Debounce: environment.Debounce{After: cfg.Timing.DebounceAfter, Max: cfg.Timing.DebounceMax},
			Pace: revision.NewPacer(cfg.Timing.EndpointPause), Moved: environment.Changes{}, Ring: cfg.Ring,
		},
		Connections: &Connections{All: map[uint64]*Connection{}, Left: placement.NewLeft[*Session]()},
		Journal:     new(cfg.Pushes),
		Seen:        cfg.Seen,
		Instances:   &Instances{Gathered: make(chan struct{}), Moved: make(chan struct{}, 1), Gone: !cfg.Gather},
	}
	if s.Seen == nil {
		s.Seen = seen.New()
	}
	s.Roster = &Roster{
		log: cfg.Log, metrics: cfg.Metrics, course: s.Course, wake: cfg.Wake, Serving: cfg.Serving,
		Plugins: map[string]*Plugin{}, Rivals: map[*Plugin]*Rival{}, Rules: cfg.Rules,
	}
	return s
}

// Coming returns the rows of tables as the first revision will have them.
func (s *State) Coming(tables []string) map[string][]*pb.Row {
	rows := map[string][]*pb.Row{}
	for _, t := range tables {
		for _, row := range s.Env.Pending.Coming(t) {
			rows[t] = append(rows[t], row)
		}
	}
	return rows
}
