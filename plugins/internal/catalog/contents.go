package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// item is one object of a file.
type item struct {
	name         state.Name
	file         string
	line, column int
	// index is its place among the file's documents.
	index int
	// row is its last good version; nil where none was good yet.
	row *sdk.Row
}

func (it *item) place() string { return kinds.Source(it.file, it.line, it.column) }

// fault says something about the item as a whole.
func (it *item) fault(code, format string, args ...any) kinds.Fault {
	namespace, name := kinds.SplitKey(it.name.Key)
	_, kind, _ := strings.Cut(it.name.Table, "/")
	return kinds.Fault{
		File: it.file, Line: it.line, Column: it.column, Kind: kind, Namespace: namespace, Name: name, Code: code,
		Message: fmt.Sprintf(format, args...),
	}
}

// contents are what one file offers: its objects, each at its last good version, and what is wrong
// with it.
type contents struct {
	items  map[state.Name]*item
	faults []kinds.Fault
}

// arrange makes a file's contents of its documents. What is faulty keeps the version that it had in
// the contents before, which may be nil.
func arrange(file string, docs []kinds.Document, before *contents) *contents {
	s := &contents{items: make(map[state.Name]*item, len(docs))}
	var unnamed []int
	for i, d := range docs {
		s.faults = append(s.faults, d.Faults...)
		switch {
		case d.Foreign != "":
		case d.Table == "" || d.Key() == "":
			unnamed = append(unnamed, i)
		default:
			s.put(&item{state.Name{Table: d.Table, Key: d.Key()}, file, d.Line, d.Column, i, d.Row}, before)
		}
	}
	if before != nil {
		vanished := before.missingIn(s)
		if len(unnamed) > 0 {
			s.keep(vanished, unnamed)
		}
		if n := len(docs); n > 0 && docs[n-1].Row == nil && docs[n-1].Foreign == "" {
			s.keepBehind(vanished, before.place(docs[n-1], n-1))
		}
	}
	return s
}

// place is where a document was among the file's, otherwise where it is now.
func (s *contents) place(d kinds.Document, now int) int {
	if it := s.items[state.Name{Table: d.Table, Key: d.Key()}]; it != nil {
		return it.index
	}
	return now
}

// keepBehind keeps what stood behind the last document, which is faulty: the file may have been
// cut.
func (s *contents) keepBehind(vanished []*item, last int) {
	for _, it := range vanished {
		if it.index >= last {
			s.items[it.name] = it
		}
	}
}

// put adds an object whose name is known.
func (s *contents) put(it *item, before *contents) {
	if first := s.items[it.name]; first != nil {
		s.faults = append(s.faults, it.fault(kinds.CodeRival, "is already at %s, which is served; remove one of them", first.place()))
		return
	}
	if it.row != nil && it.row.Size() > kinds.MaxRow {
		s.faults = append(s.faults, it.fault(kinds.CodeSize, "%s", kinds.TooLarge(it.row.Size())))
		it.row = nil
	}
	if it.row == nil && before != nil && before.items[it.name] != nil {
		it.row = before.items[it.name].row
	}
	s.items[it.name] = it
}

// missingIn returns the items that other contents of the same file have not got.
func (s *contents) missingIn(other *contents) []*item {
	var missing []*item
	for name, it := range s.items {
		if other.items[name] == nil && it.row != nil {
			missing = append(missing, it)
		}
	}
	return missing
}

// keep keeps what stood where documents now cannot even be named: all that has vanished if there is
// such a document for each, otherwise what had the same place among the documents.
func (s *contents) keep(vanished []*item, unnamed []int) {
	all := len(vanished) <= len(unnamed)
	for _, it := range vanished {
		if all || slices.Contains(unnamed, it.index) {
			s.items[it.name] = it
		}
	}
}
