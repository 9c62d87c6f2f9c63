package recording

import (
	"bytes"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// mostKept is how many bytes of bodies are kept to make others of.
const mostKept = 64 << 20

// bodies are those of which others may be edits, as they were sent.
type bodies struct {
	all  map[uint64][]byte
	size int
}

// mask takes out of bodies what is secret. An edit of a body becomes a body of its own: only that
// can be looked through. Letters take the place of what can't be: pieces of a body that is larger
// than a message, and edits of what is not kept any more.
func (b *bodies) mask(list []*pb.Body) {
	for _, x := range list {
		whole, known := x.Bytes, !x.More
		if x.Base != 0 {
			base := b.all[x.Base] // nil: it is not kept, or came in pieces
			if known = known && base != nil && x.Head+x.Tail <= uint64(len(base)) && x.Head <= uint64(len(base)); known {
				whole = slices.Concat(base[:x.Head], x.Bytes, base[uint64(len(base))-x.Tail:])
			}
			x.Base, x.Head, x.Tail = 0, 0, 0
		}
		if !known || b.piece(x.Id) {
			x.Bytes = bytes.Repeat([]byte("x"), len(x.Bytes))
			b.keep(x.Id, nil)
			continue
		}
		b.keep(x.Id, whole)
		x.Bytes = redact.SameLength("", whole)
	}
}

// piece reports whether a body began in pieces.
func (b *bodies) piece(id uint64) bool {
	was, known := b.all[id]
	return known && was == nil
}

func (b *bodies) keep(id uint64, bytes []byte) {
	if b.size+len(bytes) > mostKept {
		return
	}
	if b.all == nil {
		b.all = map[uint64][]byte{}
	}
	b.size += len(bytes) - len(b.all[id])
	b.all[id] = bytes
}

func (b *bodies) free(ids []uint64) {
	for _, id := range ids {
		b.size -= len(b.all[id])
		delete(b.all, id)
	}
}
