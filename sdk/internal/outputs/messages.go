package outputs

import (
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Pieces cuts a body that does not fit into one message.
func Pieces(b *pb.Body, room int) []*pb.Body {
	room -= bodyHead
	all := []*pb.Body{b}
	for rest := b.Bytes; len(rest) > room; {
		last := all[len(all)-1]
		last.Bytes, last.More = rest[:room], true
		rest = rest[room:]
		all = append(all, &pb.Body{Id: b.Id, Bytes: rest})
	}
	return all
}

// bodyHead bounds what a body takes besides its bytes.
const bodyHead = 64

// Messages packs bodies into messages.
func Messages(bodies []*pb.Body, most int) []*pb.FromPlugin {
	var messages []*pb.FromPlugin
	size := 0
	for i, first := 0, 0; i < len(bodies); i++ {
		size += len(bodies[i].Bytes) + bodyHead
		if i+1 == len(bodies) || size+len(bodies[i+1].Bytes)+bodyHead > most {
			messages = append(messages, &pb.FromPlugin{Bodies: &pb.Bodies{Bodies: bodies[first : i+1]}})
			first, size = i+1, 0
		}
	}
	return messages
}

// entryHead bounds what an entry takes besides its name.
const entryHead = 32

// NameRoom is how long the name of an entry may be.
func NameRoom(typeURL string, most int) int { return most - len(typeURL) - entryHead }

// EntryMessages packs changes of a part or view into messages. No name may be longer than NameRoom.
func EntryMessages(p Place, typeURL string, revision *pb.Revision, upserts []*pb.Entry, removes []string, most int) []*pb.FromPlugin {
	var messages []*pb.FromPlugin
	for len(upserts)+len(removes) > 0 {
		var u []*pb.Entry
		var r []string
		room := NameRoom(typeURL, most) + entryHead
		u, upserts, room = cut(upserts, room, func(e *pb.Entry) int { return len(e.Name) + entryHead })
		r, removes, _ = cut(removes, room, func(name string) int { return len(name) + 8 })
		if len(u)+len(r) == 0 { // a name that is too long after all
			upserts, removes = upserts[min(1, len(upserts)):], removes[min(1, len(removes)):]
			continue
		}
		messages = append(messages, entryMessage(p, typeURL, revision, u, r))
	}
	return messages
}

func entryMessage(p Place, typeURL string, revision *pb.Revision, upserts []*pb.Entry, removes []string) *pb.FromPlugin {
	if p.Part {
		return &pb.FromPlugin{Part: &pb.Part{Part: p.Number, Type: typeURL, Revision: revision, Upserts: upserts, Removes: removes}}
	}
	return &pb.FromPlugin{Change: &pb.Change{Type: typeURL, View: p.Number, Revision: revision, Upserts: upserts, Removes: removes}}
}

// cut takes from the front what fits into room.
func cut[T any](all []T, room int, size func(T) int) (head, tail []T, left int) {
	for i, x := range all {
		if n := size(x); n <= room {
			room -= n
			continue
		}
		return all[:i], all[i:], room
	}
	return all, nil, room
}
