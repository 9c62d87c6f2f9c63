package file

import (
	"fmt"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Validate returns what this source would say of files, sorted by place, and how many resources of Istio's API they hold. read returns a
// file's content.
func Validate(files []string, read func(file string) ([]byte, error), check func(finding.Resource) []finding.Finding) ([]kinds.Fault, int) {
	c, reader := newCatalog(), kinds.Reader{Check: check}
	resources := 0
	for _, file := range files {
		content, err := read(file)
		if err != nil {
			c.fail(file, unreadable(file, err))
			continue
		}
		p, err := parseFile(reader, file, content, nil, func(kinds.Document) {})
		if err != nil {
			c.fail(file, unreadable(file, err))
			continue
		}
		s := arrange(file, p.docs, nil)
		resources += len(s.items)
		c.put(file, s)
	}
	c.settle()
	faults := c.allFaults()
	kinds.SortFaults(faults)
	return faults, resources
}

// unreadable is the fault of a file that cannot be read.
func unreadable(file string, err error) kinds.Fault {
	return kinds.Fault{File: file, Line: 1, Column: 1, Code: kinds.CodeFile, Message: fmt.Sprintf("cannot be read: %v", err)}
}
