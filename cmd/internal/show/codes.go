package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Code writes what a code of a finding means, with examples.
func Code(w io.Writer, c finding.Code) {
	fmt.Fprintf(w, "%s: %s\n\n%s\n", c.ID, c.Title, c.Explanation)
	example(w, "Wrong", c.Wrong)
	example(w, "Right", c.Right)
}

func example(w io.Writer, title string, e finding.Example) {
	for _, part := range []struct{ what, text string }{
		{title, e.Documents}, {title + " (another cluster)", e.Remote}, {title + " (MeshConfig)", e.Mesh}, {title + " (MeshNetworks)", e.Networks},
	} {
		if part.text != "" {
			fmt.Fprintf(w, "\n%s:\n\n  %s\n", part.what, strings.ReplaceAll(strings.TrimRight(part.text, "\n"), "\n", "\n  "))
		}
	}
}
