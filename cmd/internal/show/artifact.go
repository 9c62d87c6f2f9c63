package show

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/artifact"
)

// Artifact writes what a registry has of an artifact, and who signed it.
func Artifact(w io.Writer, d *artifact.Description, src artifact.Source) {
	fmt.Fprintf(w, "%s\n", src.Reference.At(d.Digest))
	switch {
	case d.Signed != "":
		fmt.Fprintf(w, "  signed by %s, %s in all\n", d.Signed, Many(d.Signatures, "signature"))
	case src.Key != "":
		fmt.Fprintf(w, "  no key of %s signed it; %s of others\n", src.Key, Many(d.Signatures, "signature"))
	default:
		fmt.Fprintf(w, "  %s, which --key checks\n", Many(d.Signatures, "signature"))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Annotations)) {
		fmt.Fprintf(w, "  %s: %.200q\n", key, d.Annotations[key])
	}
	fmt.Fprintln(w, "\nPLATFORM\tSIZE\tDIGEST\tCONTENT")
	for _, p := range d.Platforms {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cmp.Or(strings.Trim(p.OS+"/"+p.Architecture, "/"), "any"),
			Size(uint64(p.Bytes)), p.Digest, strings.Join(p.Types, ", "))
	}
}
