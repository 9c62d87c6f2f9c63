package git

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// bounded keeps a commit's objects in memory, up to a size. A pack is weighed before it is
// unpacked: a few bytes may unpack to any number.
type bounded struct {
	*memory.Storage
	most int64
	// unfit is why a pack was not taken.
	unfit error
}

// mostObjects is how many objects a pack may have: they cost memory, be they ever so small.
const mostObjects = 250_000

// PackfileWriter is a storer.PackfileWriter's: what is written is a pack, which is taken when it is
// closed.
func (b *bounded) PackfileWriter() (io.WriteCloser, error) { return &pack{of: b}, nil }

// pack is one that comes.
type pack struct {
	of   *bounded
	text bytes.Buffer
}

func (p *pack) Write(b []byte) (int, error) {
	if int64(p.text.Len()+len(b)) > p.of.most {
		p.of.unfit = fmt.Errorf("the commit's objects are larger than limits.bytes, %d", p.of.most)
		return 0, p.of.unfit
	}
	return p.text.Write(b)
}

// Close unpacks it.
func (p *pack) Close() error {
	if p.of.unfit != nil || p.text.Len() == 0 {
		return p.of.unfit
	}
	if err := p.weigh(); err != nil {
		return err
	}
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(p.text.Bytes())), p.of.Storage)
	if err == nil {
		_, err = parser.Parse()
	}
	return err
}

// weigh adds up what the objects would have, unpacked. Source: Git, "gitformat-pack".
func (p *pack) weigh() error {
	s := packfile.NewScanner(bytes.NewReader(p.text.Bytes()))
	_, count, err := s.Header()
	if err != nil {
		return err
	}
	if count > mostObjects {
		p.of.unfit = fmt.Errorf("the commit has %d objects, which is more than %d", count, mostObjects)
		return p.of.unfit
	}
	total := int64(0)
	add := func(n int64) error {
		if n < 0 || n > p.of.most-total {
			p.of.unfit = fmt.Errorf("the commit's objects are larger than limits.bytes, %d", p.of.most)
			return p.of.unfit
		}
		total += n
		return nil
	}
	for range count {
		h, err := s.NextObjectHeader()
		if err != nil {
			return err
		}
		if err := add(h.Length); err != nil {
			return err
		}
		var begin beginning
		if _, _, err := s.NextObject(&begin); err != nil { // no more than Length are unpacked
			return err
		}
		if h.Type.IsDelta() {
			if err := add(begin.result()); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginning keeps the first bytes that are written.
type beginning struct {
	bytes [2 * binary.MaxVarintLen64]byte
	n     int
}

func (b *beginning) Write(p []byte) (int, error) {
	b.n += copy(b.bytes[b.n:], p)
	return len(p), nil
}

// result is how many bytes a delta makes: the second number in it; less than 0: there is none.
func (b *beginning) result() int64 {
	_, n := binary.Uvarint(b.bytes[:b.n])
	if n <= 0 {
		return -1
	}
	size, n := binary.Uvarint(b.bytes[n:b.n])
	if n <= 0 || size > 1<<62 {
		return -1
	}
	return int64(size)
}
