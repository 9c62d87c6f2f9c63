// Package strict reads YAML into structs and lets no mistake pass: an unknown, missing or repeated
// key and a value of the wrong type are errors with file, line and column, and all errors of a file
// are reported at once.
//
//	type Entry struct {
//		At    strict.Place                             // filled in: where the mapping begins
//		Keys  strict.Keys                              // filled in: where the values of its keys stand
//		Name  string        `yaml:"name" need:"true"`  // must be given
//		Mode  string        `yaml:"mode" enum:"a,b"`   // one of these
//		Wait  time.Duration `yaml:"wait"`              // 10s; must be positive
//		Other *Other        `yaml:"other"`             // nil if not given
//		Raw   strict.JSON   `yaml:"raw"`               // anything
//	}
//
// Types that implement encoding.TextUnmarshaler are scalars that check themselves; structs that
// implement Words may be given as a word.
package strict

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Place is where something stands in a file. Lines and columns count from 1.
type Place struct {
	File         string
	Line, Column int
}

// String returns the place as FILE:LINE:COLUMN.
func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Keys says where the values of a mapping's keys stand; within JSON values by path, such as
// config.services[2].port.
type Keys map[string]Place

// Error is one mistake in a file.
type Error struct {
	Place
	Text string
}

// Error implements error.
func (e Error) Error() string { return e.Place.String() + ": " + e.Text }

// Errors are all mistakes of a file, in the file's order where the reader met them so.
type Errors []Error

// Error implements error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Decode reads the one document of data into a struct. The error is of type Errors; what could be
// read is in `into` even so.
func Decode(file string, data []byte, into any) error {
	d := &decoder{file: file, budget: maxNodes}
	root, ok := d.document(data)
	if ok {
		d.value(root, reflect.ValueOf(into).Elem(), "")
	}
	if len(d.errors) > 0 {
		return d.errors
	}
	return nil
}

const (
	// maxSize is the size in bytes beyond which a file is not read.
	maxSize = 1 << 20
	// maxNodes bounds what a file can expand to by aliases.
	maxNodes = 100_000
	// maxDepth bounds nesting, and an alias that contains itself.
	maxDepth = 100
)

type decoder struct {
	file   string
	errors Errors
	budget int
	spent  bool
	depth  int
}

func (d *decoder) place(n *yaml.Node) Place { return Place{d.file, n.Line, n.Column} }

func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	d.errors = append(d.errors, Error{d.place(n), fmt.Sprintf(format, args...)})
}

var (
	syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	// fromZero are messages for which the parser counts lines from 0.
	fromZero = regexp.MustCompile(`^did not find expected (<|node content|'-' indicator|key|',' or)`)
	anchor   = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// document parses the text and checks that it holds one mapping.
func (d *decoder) document(data []byte) (*yaml.Node, bool) {
	if len(data) > maxSize {
		d.fail(&yaml.Node{Line: 1, Column: 1}, "the file is larger than %d MiB", maxSize>>20)
		return nil, false
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc, more yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		d.syntax(err, string(data))
		return nil, false
	}
	if err := decoder.Decode(&more); err == nil {
		d.fail(&more, "a second document; the file must hold one")
	}
	if len(doc.Content) != 1 {
		d.fail(&yaml.Node{Line: 1, Column: 1}, "the file is empty")
		return nil, false
	}
	return doc.Content[0], true
}

// syntax turns the parser's error, which knows only the line, and not always that, into one of
// ours.
func (d *decoder) syntax(err error, data string) {
	at := yaml.Node{Line: 1, Column: 1}
	text := err.Error()
	if text == "EOF" {
		text = "the file is empty"
	}
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		text = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			at.Line = n
			if fromZero.MatchString(text) {
				at.Line++
			}
		}
	}
	if m := anchor.FindStringSubmatch(text); m != nil {
		before, _, _ := strings.Cut(data, "*"+m[1])
		at.Line = 1 + strings.Count(before, "\n")
		at.Column = len(before) - strings.LastIndex(before, "\n")
	}
	d.fail(&at, "%s", text)
}

// enter follows aliases and counts; it is false where the file is too deep or too large.
func (d *decoder) enter(n *yaml.Node) (*yaml.Node, bool) {
	at := n
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.budget--
	d.depth++
	switch {
	case d.depth > maxDepth:
		d.fail(at, "nested more than %d deep", maxDepth)
		return nil, false
	case d.budget <= 0 && !d.spent:
		d.spent = true
		d.fail(at, "the file expands to more than %d values; are there aliases of aliases?", maxNodes)
		return nil, false
	case d.budget <= 0:
		return nil, false
	}
	return n, true
}

func (d *decoder) leave() { d.depth-- }
