package show

import (
	"fmt"
	"io"

	"github.com/coxswain-mesh/coxswain/core/levels"
)

// Levels writes the levels of the log by area.
func Levels(w io.Writer, all []levels.Area) {
	fmt.Fprintln(w, "AREA\tLEVEL\tOWN")
	for _, a := range all {
		own := "-"
		if a.Own {
			own = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", a.Area, a.Level, own)
	}
}
