package catalog

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
)

// maxDocuments bounds what a file costs to read: a document takes 3 KB if there is much to say
// about it.
const maxDocuments = 100_000

// Parsed is a file's content, document by document, so that those that an edit left alone are not
// parsed again.
type Parsed struct {
	sum    [sha256.Size]byte
	chunks map[[sha256.Size]byte]chunk
	docs   []kinds.Document
	// size and chunks in order say, with whether it ends with a line, whether the file is cut
	// later.
	size  int
	order [][sha256.Size]byte
	lines bool
}

// Cut reports whether that is what is left of an earlier content whose end is missing: its last
// document has changed or gone, and ends amid a line.
func (p *Parsed) Cut(before *Parsed) bool {
	if before == nil || p.lines || !before.lines || p.size >= before.size || len(p.order) == 0 || len(p.order) > len(before.order) {
		return false
	}
	same := len(p.order) - 1
	return slices.Equal(p.order[:same], before.order[:same])
}

// chunk is what a part of the file was parsed to, when it stood behind some lines.
type chunk struct {
	before int
	docs   []kinds.Document
}

// Parse reads a file's content. It takes from before, its last parse (or nil), what has not
// changed, and returns before itself if nothing has. fresh is called for each document that was
// parsed. A file of too many documents is an error.
func Parse(reader kinds.Reader, path string, content []byte, before *Parsed, fresh func(kinds.Document)) (*Parsed, error) {
	sum := sha256.Sum256(content)
	if before != nil && before.sum == sum {
		return before, nil
	}
	parts := protoyaml.Split(content)
	if len(parts) > maxDocuments {
		return nil, fmt.Errorf("it has %d documents, and a file may have %d; make several files of it", len(parts), maxDocuments)
	}
	p := &Parsed{sum: sum, chunks: make(map[[sha256.Size]byte]chunk), size: len(content), lines: bytes.HasSuffix(content, []byte("\n"))}
	for _, part := range parts {
		key := sha256.Sum256(part.Text)
		known, ok := p.known(key, before)
		if !ok {
			known = chunk{part.Before, reader.ReadChunk(path, part)}
			for _, d := range known.docs {
				fresh(d)
			}
		}
		now := chunk{before: part.Before}
		for _, d := range known.docs {
			now.docs = append(now.docs, d.Moved(path, part.Before-known.before))
		}
		p.chunks[key] = now
		p.order = append(p.order, key)
		p.docs = append(p.docs, now.docs...)
	}
	return p, nil
}

// Documents are those of the file, in order.
func (p *Parsed) Documents() []kinds.Document { return p.docs }

// known returns a chunk that was parsed before, in this parse or the last.
func (p *Parsed) known(key [sha256.Size]byte, before *Parsed) (chunk, bool) {
	if c, ok := p.chunks[key]; ok {
		return c, true
	}
	if before == nil {
		return chunk{}, false
	}
	c, ok := before.chunks[key]
	return c, ok
}
