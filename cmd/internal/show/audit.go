package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/audit"
)

// Audit writes a line of the audit log.
func Audit(w io.Writer, e audit.Entry) {
	fmt.Fprintf(w, "%s %s: %s %s, by %s", e.At.Format("2006-01-02 15:04:05"), e.Plugin, e.What, e.Outcome, e.Who)
	if e.Force {
		fmt.Fprint(w, ", forced")
	}
	fmt.Fprintln(w)
	if e.From != nil || e.To != nil {
		fmt.Fprintf(w, "  %s -> %s\n", programText(e.From), programText(e.To))
	}
	for _, v := range []struct{ title, text string }{
		{"changed", strings.Join(e.Changed, ", ")}, {"difference", e.Summary},
		{"because", strings.Join(e.Reasons, "; ")},
	} {
		if v.text != "" {
			fmt.Fprintf(w, "  %s: %s\n", v.title, strings.ReplaceAll(v.text, "\n", "\n    "))
		}
	}
}

func programText(p *audit.Program) string {
	switch {
	case p == nil:
		return "nothing"
	case p.SHA256 == "":
		return p.Name
	}
	return p.Name + " (sha256 " + p.SHA256 + ")"
}
