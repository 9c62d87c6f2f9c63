package plan

import (
	"fmt"
	"io"

	"google.golang.org/protobuf/types/known/anypb"
)

// Compared returns the fields in which two encoded messages of a type differ.
func Compared(typeURL string, before, after []byte) []Change {
	return Differences(&anypb.Any{TypeUrl: typeURL, Value: before}, &anypb.Any{TypeUrl: typeURL, Value: after})
}

// WriteGroups prints differences, and who has them, as Write does; wide: with all values and names
// whole.
func WriteGroups(w io.Writer, groups []Group, wide bool) {
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s, %s\n", kind(g.Type), g.who(wide))
		for _, line := range g.lines(wide) {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
}
