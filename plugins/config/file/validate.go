package file

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Validate returns what this source would say of files, sorted by place, and how many resources of
// Istio's API they hold. read returns a file's content.
func Validate(files []string, read func(file string) ([]byte, error), check func(finding.Resource) []finding.Finding) ([]kinds.Fault, int) {
	c, reader := catalog.New(), kinds.Reader{Check: check, Secrets: true, Grants: true, Gateways: true}
	resources := 0
	for _, file := range files {
		content, err := read(file)
		if err != nil {
			c.Fail(file, catalog.Unreadable(file, err))
			continue
		}
		p, err := catalog.Parse(reader, file, content, nil, func(kinds.Document) {})
		if err != nil {
			c.Fail(file, catalog.Unreadable(file, err))
			continue
		}
		resources += c.Offer(file, file, p.Documents())
	}
	c.Changes()
	faults := c.Faults()
	kinds.SortFaults(faults)
	return faults, resources
}
