package show

import (
	"fmt"
	"io"

	"github.com/coxswain-mesh/coxswain/core/control"
)

// Holds has a line for each hold; wide: and one for each reason.
func Holds(w io.Writer, all []control.Held, wide bool) {
	if len(all) == 0 {
		fmt.Fprintln(w, "nothing is held")
		return
	}
	fmt.Fprintln(w, "PLUGIN\tSINCE\tROWS\tPROXIES\tWHAT WOULD GO")
	for _, h := range all {
		reasons := []string{FirstOf(h.Reasons)}
		if wide && len(h.Reasons) > 0 {
			reasons = h.Reasons
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\n", h.Plugin, h.Since.Format("2006-01-02 15:04:05"), h.Rows, h.Proxies, reasons[0])
		for _, r := range reasons[1:] {
			fmt.Fprintf(w, "\t\t\t\t%s\n", r)
		}
	}
}

// Hold writes what is held of a plugin, and why.
func Hold(w io.Writer, h *control.Held) {
	fmt.Fprintf(w, "%s: held since %s\n", h.Plugin, h.Since.Format("2006-01-02 15:04:05"))
	for _, r := range h.Reasons {
		fmt.Fprintf(w, "  because: %s\n", r)
	}
	if h.Difference != nil && !h.Difference.Empty() {
		Difference(w, h.Difference)
	}
}
