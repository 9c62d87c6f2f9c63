package kinds

import (
	"fmt"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Moved returns the document as it is when it stands some lines further down in its file.
func (d Document) Moved(file string, lines int) Document {
	if lines == 0 {
		return d
	}
	d.Line += lines
	if d.Row != nil {
		d.Row = &pb.Row{
			Key: d.Row.Key, Created: d.Row.Created, Undated: d.Row.Undated, Source: Source(file, d.Line, d.Column),
			Labels: d.Row.Labels, Annotations: d.Row.Annotations, Payload: d.Row.Payload,
		}
	}
	faults := make([]Fault, len(d.Faults))
	for i, f := range d.Faults {
		f.Line += lines
		faults[i] = f
	}
	d.Faults = faults
	return d
}

// Source returns what a row says of where it came from, FILE:LINE:COLUMN; FILE alone where there
// are no lines, as in an API server.
func Source(file string, line, column int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}
