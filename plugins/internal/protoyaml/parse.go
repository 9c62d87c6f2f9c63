package protoyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Parse returns the root of a chunk's document, with the lines of the whole stream; nil where there
// is none.
func (c Chunk) Parse() (root *yaml.Node, fault *Fault) {
	defer func() {
		if r := recover(); r != nil {
			root, fault = nil, &Fault{Line: c.Before + 1, Column: 1, Code: CodeSyntax, Reason: fmt.Sprintf("not YAML: %v", r)}
		}
	}()
	if at := c.invalid(); at > 0 {
		return nil, &Fault{Line: at, Column: 1, Code: CodeSyntax, Reason: "not YAML: the line holds bytes that are no UTF-8; save the file as UTF-8"}
	}
	if at := c.beyond(maxMarks); at > 0 {
		return nil,
			&Fault{Line: at, Column: 1, Code: CodeTooLarge, Reason: fmt.Sprintf("the document has more than %d entries; write several documents", maxMarks)}
	}
	if root = plainly(c.Text); root != nil {
		shift(root, c.Before)
		return root, nil
	}
	var document yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(c.Text)).Decode(&document)
	if errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, c.syntax(err)
	}
	root = document.Content[0]
	shift(root, c.Before)
	return root, nil
}

// invalid returns the first line that is no UTF-8; 0: there is none. A parser that took it would
// make other names of what is there.
func (c Chunk) invalid() int {
	if utf8.Valid(c.Text) {
		return 0
	}
	line := c.Before
	for text := range bytes.Lines(c.Text) {
		if line++; !utf8.Valid(text) {
			break
		}
	}
	return line
}

// maxMarks is how many characters a document may have that can begin an entry: each entry takes
// some 500 bytes to read, whatever it says. What a row may hold has fewer.
const maxMarks = 1 << 19

// beyond returns the line in which a document has more than so many characters that can begin an
// entry; 0: it has not.
func (c Chunk) beyond(most int) int {
	line := c.Before + 1
	for _, b := range c.Text {
		switch b {
		case '\n':
			line++
			most--
		case ',', ':', '-', '?', '[', '{':
			most--
		}
		if most < 0 {
			return line
		}
	}
	return 0
}

// shift moves a tree down by some lines. Aliases are left alone: what they name stands in the tree
// itself.
func shift(n *yaml.Node, lines int) {
	if lines == 0 {
		return
	}
	n.Line += lines
	for _, child := range n.Content {
		shift(child, lines)
	}
}

// syntax makes a fault of the parser's error, which reads `yaml: line 3: …`.
func (c Chunk) syntax(err error) *Fault {
	line, reason := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(reason, "line "); ok {
		number, text, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			line, reason = n, text
		}
	}
	switch {
	case inBlock(reason):
		line = c.firstLineWith(reason)
	case inFlow(reason):
		// The parser counts these from 0.
		line++
	}
	return &Fault{Line: c.Before + line, Column: 1, Code: CodeSyntax, Reason: "not YAML: " + reason + hint(reason)}
}

// inBlock reports whether an error is one for which the parser names the block's first line, not
// the faulty one.
func inBlock(reason string) bool {
	return reason == "did not find expected key" || reason == "did not find expected '-' indicator"
}

// inFlow reports whether an error is one for which the parser names the line of the bracket that is
// open.
func inFlow(reason string) bool { return strings.HasPrefix(reason, "did not find expected ','") }

// firstLineWith returns the line without which the text has not got this error.
func (c Chunk) firstLineWith(reason string) int {
	ends := lineEnds(c.Text)
	return 1 + sort.Search(len(ends)-1, func(i int) bool {
		var ignored yaml.Node
		err := yaml.NewDecoder(bytes.NewReader(c.Text[:ends[i]])).Decode(&ignored)
		return err != nil && strings.HasSuffix(err.Error(), reason)
	})
}

// lineEnds returns the offset behind each line.
func lineEnds(text []byte) []int {
	var ends []int
	for at := 0; at < len(text); {
		at = endOfLine(text, at)
		ends = append(ends, at)
	}
	return ends
}

// hint says what is behind the parser's words, where that is nearly always the same.
func hint(reason string) string {
	switch {
	case inBlock(reason):
		return " (is the indentation right?)"
	case inFlow(reason):
		return " (a bracket that is opened here is not closed)"
	case strings.HasPrefix(reason, "mapping values are not allowed"):
		return " (a value that holds ': ' needs quotes, or the indentation is wrong)"
	case strings.HasPrefix(reason, "found character that cannot start any token"):
		return " (YAML indents with spaces, not tabs; values that begin with @ or ` need quotes)"
	}
	return ""
}
