package budget

import (
	"fmt"

	"google.golang.org/grpc/codes"
)

// Ask notes names that a stream asks for, of which h.Absent don't exist and unanswered are not known to, and returns how many of these plugins may
// be asked for now. A long list is asked for in parts: those who want what exists get all of it, and those who don't are refused before it costs much.
func (l *Lease) Ask(slot string, h Held, unanswered int) (now int, err error) {
	p := l.peers
	p.mu.Lock()
	e, was := l.peer, l.held[slot]
	now, err = p.limits.part(e, h, was, unanswered)
	p.mu.Unlock()
	if err != nil {
		return 0, err
	}
	h.Asked = now
	return now, l.Hold(slot, h)
}

// part returns how many names may be asked for, with what the stream had before not counted.
func (l Limits) part(e *peer, h, was Held, unanswered int) (int, error) {
	const do = "ask for what exists"
	now := unanswered
	if most := l.Stream.UnknownNames; most > 0 {
		if h.Absent+min(unanswered, 1) > most {
			return 0, exceeds(codes.ResourceExhausted, "maxUnknownNames", most, fmt.Sprintf("the stream asks for %d names of one type that don't exist, and for more", h.Absent), do)
		}
		now = min(now, most-h.Absent)
	}
	if most := l.Peer.UnknownNames; most > 0 {
		if k := e.lists[was.Of]; k != nil && k.streams > 1 && was.Of != h.Of {
			was = Held{} // others go on holding it
		}
		absent, asked := e.absent-was.Absent+h.Absent, e.asked-was.Asked
		if absent+min(unanswered, 1) > most {
			return 0, exceeds(codes.ResourceExhausted, "maxUnknownNamesPerPeer", most, fmt.Sprintf("the streams of %s ask for %d names that don't exist, and for more", e.key, absent), do)
		}
		now = max(0, min(now, most-absent-asked))
	}
	return now, nil
}
