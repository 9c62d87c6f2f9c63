package protoyaml

import (
	"strconv"
	"strings"
)

// path is where a decoder stands; it becomes text only when there is something to say.
type path struct {
	root  string
	steps []step
}

// step is a field's name, a map's key, or an index.
type step struct {
	name  string
	index int
	kind  stepKind
}

type stepKind uint8

const (
	fieldStep stepKind = iota
	keyStep
	indexStep
)

func (p *path) push(s step) { p.steps = append(p.steps, s) }

func (p *path) pop() { p.steps = p.steps[:len(p.steps)-1] }

// String returns such as spec.http[0].headers["x"].
func (p *path) String() string {
	var b strings.Builder
	b.WriteString(p.root)
	for _, s := range p.steps {
		switch s.kind {
		case fieldStep:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		case keyStep:
			b.WriteString("[" + strconv.Quote(s.name) + "]")
		case indexStep:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		}
	}
	return b.String()
}
