package protoyaml

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// plainly parses what most files are: block mappings and sequences of scalars that stand in one
// line, in ASCII, with comments in lines of their own. It returns nil where there is anything else,
// or where it is not sure; that is the library's, as are all faults. What it returns is what the
// library would, without comments, at a tenth of the cost.
func plainly(text []byte) *yaml.Node {
	p := plain{}
	if !p.split(text) || len(p.lines) == 0 || p.lines[0].indent != 0 {
		return nil
	}
	root := p.block(0, 0)
	if p.at < len(p.lines) {
		return nil
	}
	return root
}

// plain is a text that is being parsed.
type plain struct {
	lines []plainLine
	at    int // the next line
	nodes []yaml.Node
}

// plainLine is a line that says something: what stands behind its indentation.
type plainLine struct {
	number, indent int
	text           []byte
}

// deepest is how deep blocks may nest.
const deepest = 100

// split finds the lines. It reports whether all have nothing but what may stand in plain text.
func (p *plain) split(text []byte) bool {
	p.lines = make([]plainLine, 0, bytes.Count(text, []byte{'\n'})+1)
	number, marked := 0, false
	for at := 0; at < len(text); number++ {
		next := endOfLine(text, at)
		line := bytes.TrimSuffix(text[at:next], []byte{'\n'})
		at = next
		rest := bytes.TrimLeft(line, " ")
		for _, c := range rest {
			if c < ' ' || c > '~' {
				return false
			}
		}
		switch {
		case len(rest) == 0 || rest[0] == '#':
		case len(p.lines) == 0 && !marked && string(line) == "---":
			marked = true
		case rest[len(rest)-1] == ' ':
			return false
		default:
			p.lines = append(p.lines, plainLine{number + 1, len(line) - len(rest), rest})
		}
	}
	return true
}

// next returns the next line; at the end one that belongs to no block.
func (p *plain) next() plainLine {
	if p.at == len(p.lines) {
		return plainLine{indent: -1}
	}
	return p.lines[p.at]
}

// block parses the mapping or sequence that begins in the next line. It ends at a line that is none
// of its own; where that is nobody's, the text is not plain.
func (p *plain) block(indent, depth int) *yaml.Node {
	switch {
	case depth > deepest:
		return nil
	case isItem(p.lines[p.at].text):
		return p.sequence(indent, depth)
	}
	return p.mapping(indent, depth)
}

// isItem reports whether a line begins an item of a sequence.
func isItem(text []byte) bool { return text[0] == '-' && (len(text) == 1 || text[1] == ' ') }

func (p *plain) mapping(indent, depth int) *yaml.Node {
	n := p.node(yaml.MappingNode, "!!map", p.lines[p.at], indent)
	for line := p.next(); line.indent == indent && !isItem(line.text); line = p.next() {
		end := keyEnd(line.text)
		if end == 0 {
			return nil
		}
		key := p.scalar(line, indent, line.text[:end])
		value := p.value(line, indent, end+1, depth)
		if key == nil || value == nil {
			return nil
		}
		n.Content = append(n.Content, key, value)
	}
	return n
}

// value parses what stands behind a key: in its line, from an offset, or below it.
func (p *plain) value(line plainLine, indent, from, depth int) *yaml.Node {
	p.at++
	next := p.next()
	deeper := next.indent > indent
	text := bytes.TrimLeft(line.text[from:], " ")
	switch {
	case len(text) > 0 && !deeper:
		return p.scalar(line, indent+len(line.text)-len(text), text)
	case len(text) > 0:
		return nil // it goes on in the next line
	case deeper || next.indent == indent && isItem(next.text):
		return p.block(next.indent, depth+1)
	}
	return nil
}

func (p *plain) sequence(indent, depth int) *yaml.Node {
	n := p.node(yaml.SequenceNode, "!!seq", p.lines[p.at], indent)
	for line := p.next(); line.indent == indent && isItem(line.text); line = p.next() {
		item := p.item(line, depth)
		if item == nil {
			return nil
		}
		n.Content = append(n.Content, item)
	}
	return n
}

// item parses an item of a sequence: a scalar, or a mapping that begins in its line.
func (p *plain) item(line plainLine, depth int) *yaml.Node {
	if len(line.text) < 3 {
		return nil
	}
	inner := plainLine{line.number, line.indent + 2, line.text[2:]}
	if keyEnd(inner.text) > 0 {
		p.lines[p.at] = inner
		return p.block(inner.indent, depth+1)
	}
	p.at++
	if p.next().indent > line.indent {
		return nil // it goes on in the next line
	}
	return p.scalar(inner, inner.indent, inner.text)
}

// longestKey bounds keys: those of YAML have at most 1024 characters.
const longestKey = 1000

// keyEnd returns where the key ends with which a line begins; 0: it begins with none that is plain.
func keyEnd(text []byte) int {
	for i, c := range text[:min(len(text), longestKey)] {
		switch {
		case letterOrDigit(c) || c == '_' || i > 0 && (c == '.' || c == '/' || c == '-'):
		case c == ':' && (i+1 == len(text) || text[i+1] == ' '):
			return i
		default:
			return 0
		}
	}
	return 0
}

func letterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// scalar returns the scalar that a text is, which stands in a line at a column (from 0).
func (p *plain) scalar(line plainLine, column int, text []byte) *yaml.Node {
	if quote := text[0]; quote == '"' || quote == '\'' {
		if len(text) < 2 || text[len(text)-1] != quote || bytes.IndexByte(text[1:len(text)-1], quote) >= 0 || quote == '"' && bytes.IndexByte(text, '\\') >= 0 {
			return nil
		}
		n := p.node(yaml.ScalarNode, "!!str", line, column)
		n.Value, n.Style = string(text[1:len(text)-1]), yaml.SingleQuotedStyle
		if quote == '"' {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n
	}
	if !isPlain(text) {
		return nil
	}
	n := p.node(yaml.ScalarNode, "", line, column)
	n.Value = string(text)
	n.Tag = n.ShortTag()
	return n
}

// isPlain reports whether a text is surely one scalar without quotes.
func isPlain(text []byte) bool {
	if c := text[0]; !letterOrDigit(c) && c != '_' && c != '/' && !(c == '-' && len(text) > 1 && letterOrDigit(text[1])) {
		return false
	}
	return bytes.IndexByte(text, '#') < 0 && text[len(text)-1] != ':' && !bytes.Contains(text, []byte(": "))
}

// node returns a new node.
func (p *plain) node(kind yaml.Kind, tag string, line plainLine, column int) *yaml.Node {
	const together = 32
	if len(p.nodes) == 0 {
		p.nodes = make([]yaml.Node, together)
	}
	n := &p.nodes[0]
	p.nodes = p.nodes[1:]
	n.Kind, n.Tag, n.Line, n.Column = kind, tag, line.number, column+1
	return n
}
