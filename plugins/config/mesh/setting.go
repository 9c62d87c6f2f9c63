package mesh

import (
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
	"google.golang.org/protobuf/proto"
)

// setting is MeshConfig or MeshNetworks, and the row that becomes of its layers.
type setting struct {
	// table is the row's table, and its key.
	table string
	// kind is MeshConfig or MeshNetworks.
	kind  string
	check func(finding.Resource) []finding.Finding
	// layers in the order in which they are applied.
	layers []*layer

	// row is the last good version.
	row    *sdk.Row
	faults []kinds.Fault
}

// look reads the layers and makes the row anew. A layer that is faulty counts with its last good
// version, or not at all where it never had one.
func (s *setting) look(now time.Time, patience time.Duration) {
	s.faults = nil
	message := defaults(s.kind)
	var places []string
	for _, l := range s.layers {
		l.look(now, patience)
		next, faults := s.apply(l, message)
		s.faults = append(append(s.faults, l.faults...), faults...)
		if next == nil {
			continue
		}
		message = next
		if l.counts() {
			places = append(places, kinds.Source(l.place, 1, 1))
		}
		if s.kind == MeshNetworks && l.good != nil { // networks are not merged
			break
		}
	}
	payload, err := kinds.Encode(message)
	if err != nil {
		s.faults = append(s.faults, kinds.Fault{Code: kinds.CodeFile, Kind: s.kind, Message: err.Error()})
		return
	}
	if len(places) == 0 {
		places = []string{"defaults"}
	}
	s.row = &sdk.Row{Key: s.table, Source: strings.Join(places, ", "), Payload: payload}
}

// apply returns what a message becomes by a layer, and what is wrong with it; nil: it has no
// version that can be applied.
func (s *setting) apply(l *layer, message proto.Message) (proto.Message, []kinds.Fault) {
	next, faults := readOver(message, s.kind, l.place, l.text, s.check)
	if !kinds.Refuses(faults) {
		l.good = l.text
		return next, faults
	}
	if l.good != nil {
		if next, wrong := readOver(message, s.kind, l.place, l.good, s.check); !kinds.Refuses(wrong) {
			return next, faults
		}
	}
	return nil, faults
}

// missing returns since when a layer has been empty or missing that is not said to be yet; zero:
// there is none.
func (s *setting) missing() time.Time {
	var since time.Time
	for _, l := range s.layers {
		if !l.gone.IsZero() && !l.missed && (since.IsZero() || l.gone.Before(since)) {
			since = l.gone
		}
	}
	return since
}
