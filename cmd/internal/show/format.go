package show

import (
	"encoding/json"
	"io"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// Formats returns the forms in which commands print what they were told: --output.
func Formats() []string { return []string{"table", "wide", "json", "yaml"} }

// Raw returns a page's JSON in a form that is read by programs: as it is, or as YAML; nil for
// tables.
func Raw(page []byte, format string) ([]byte, error) {
	switch format {
	case "json":
		return page, nil
	case "yaml":
		return yaml.JSONToYAML(page)
	}
	return nil, nil
}

// Print writes v as JSON or YAML or, as a table, what table writes of it; wide: with all that there
// is.
func Print(out io.Writer, format string, v any, table func(w io.Writer, wide bool)) error {
	switch format {
	case "json":
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case "yaml":
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	table(w, format == "wide")
	return w.Flush()
}
