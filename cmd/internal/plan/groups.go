package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"google.golang.org/protobuf/types/known/anypb"
)

// Compared returns the fields in which two encoded messages of a type differ. Of secrets it says
// that they do, not what they are.
func Compared(typeURL string, before, after []byte) []Change {
	without := redact.Numbered()
	all := Differences(&anypb.Any{TypeUrl: typeURL, Value: without(typeURL, before)}, &anypb.Any{TypeUrl: typeURL, Value: without(typeURL, after)})
	for i, c := range all {
		c.Before, c.After = unnumbered(c.Before), unnumbered(c.After)
		if len(c.Before) > 0 && bytes.Equal(c.Before, c.After) {
			c.Before, c.After = masked, changed
		}
		all[i] = c
	}
	return all
}

// Withheld is the change of a resource of which what it was is not known any more.
func Withheld() []Change { return []Change{{Before: masked, After: changed}} }

// masked and changed are said of a secret that differs.
var masked, changed = json.RawMessage(`"(masked)"`), json.RawMessage(`"(masked) changed"`)

func unnumbered(text json.RawMessage) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(redact.Unnumbered(string(text)))
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
