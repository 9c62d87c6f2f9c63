package sdk

import (
	"context"
	"errors"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// messageRoom is how large the contents of a message may grow; the rest is for what surrounds them.
const messageRoom = session.MaxMessage - 4096

// room is how large the contents of a message of this session may grow: the core sets it
// (limits.messageBytes), and has set it by the time anything is sent but Ready. The rest is for
// what surrounds them.
func (ps *pluginSession) room() int {
	most := ps.most()
	return most - min(session.MaxMessage-messageRoom, most/4)
}

// most is the largest message of this session, in bytes.
func (ps *pluginSession) most() int {
	most := session.MaxMessage
	if l := ps.hello.Limits; l != nil && l.MessageBytes > 0 {
		most = min(most, int(l.MessageBytes))
	}
	return most
}

// send is the link's Send, which refuses what is larger than the core takes: it would end the
// session.
func (ps *pluginSession) send(ctx context.Context, m *pb.FromPlugin) error {
	if most := ps.most(); most < session.MaxMessage {
		if size := m.Size(); size > most {
			return text.Error(size, " bytes, and limits.messageBytes is ", most, ": ", session.ErrTooLarge)
		}
	}
	return ps.link.Send(ctx, m)
}

// say sends a message, and logs one that is too large in place of it. Words that would make it too
// large — a view's label and facts, why a node is refused, a line of the log — are cut: they may
// repeat what a client said, and nothing that a client says may keep from the core what it must
// know.
func (ps *pluginSession) say(ctx context.Context, m *pb.FromPlugin) {
	wordy := m.View != nil || m.Place != nil || m.Log != nil || m.Done != nil
	if wordy && m.Size() > ps.room() {
		cutWords(m, max(64, ps.room()/64))
	}
	if err := ps.send(ctx, m); errors.Is(err, session.ErrTooLarge) && m.Log == nil {
		ps.log(ctx, Error, "a message is too large, and was left out", "message", kindOf(m), "reason", err)
	}
}

// cutWords cuts the words of a message to some bytes each.
func cutWords(m *pb.FromPlugin, most int) {
	switch {
	case m.View != nil:
		m.View.Label, m.View.Facts = cutText(m.View.Label, most), cutFields(m.View.Facts, most)
	case m.Place != nil:
		m.Place.Refused = cutText(m.Place.Refused, most)
	case m.Log != nil:
		m.Log.Text, m.Log.Fields = cutText(m.Log.Text, most), cutFields(m.Log.Fields, most)
	case m.Done != nil:
		for _, f := range m.Done.Faults {
			f.What, f.Reason = cutText(f.What, most/16), cutText(f.Reason, most/16)
			f.Rows = f.Rows[:min(len(f.Rows), 1)]
		}
	}
}

// cutFields cuts values, and leaves out what is one too many.
func cutFields(fields map[string]string, most int) map[string]string {
	const fieldsAtMost = 24
	out := map[string]string{}
	for k, v := range fields {
		if len(out) < fieldsAtMost && len(k) <= most {
			out[k] = cutText(v, most)
		}
	}
	return out
}

func cutText(words string, most int) string {
	if len(words) <= most {
		return words
	}
	return strings.ToValidUTF8(words[:most], "") + "…"
}
