package show

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// Views has a line for each type, with the facts of which views of it have different values.
func Views(w io.Writer, list []admin.View) {
	fmt.Fprintln(w, "TYPE\tVIEWS\tCONNECTIONS\tRESOURCES\tSPLIT BY")
	types := map[string][]admin.View{}
	for _, v := range list {
		types[v.Type] = append(types[v.Type], v)
	}
	for _, t := range slices.Sorted(maps.Keys(types)) {
		connections, most := 0, 0
		for _, v := range types[t] {
			connections += v.Connections
			most = max(most, v.Resources)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", LastWord(t), len(types[t]), connections, most, cmp.Or(splitting(types[t]), "-"))
	}
}

// splitting names the facts that differ between views, each with the number of its values.
func splitting(views []admin.View) string {
	values := map[string]map[string]bool{}
	for _, v := range views {
		for fact := range v.Facts {
			values[fact] = map[string]bool{}
		}
	}
	for _, v := range views {
		for fact, of := range values {
			of[v.Facts[fact]] = true
		}
	}
	var split []string
	for _, fact := range slices.Sorted(maps.Keys(values)) {
		if n := len(values[fact]); n > 1 {
			split = append(split, fmt.Sprintf("%s (%d)", fact, n))
		}
	}
	return strings.Join(split, ", ")
}
