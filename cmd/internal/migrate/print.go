package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// File is a file of a plan.
type File struct {
	Name string
	Text []byte
}

// Files are what a plan is written into.
func (p *Plan) Files() ([]File, error) {
	settings, err := yaml.Marshal(p.Settings)
	if err != nil {
		return nil, err
	}
	head := "# coxswain discovery --settings settings.yaml --plugins plugins.yaml, as the account " + p.Namespace + "/" + p.Account + "\n"
	hooks := &bytes.Buffer{}
	fmt.Fprintln(hooks, "# Once the control plane is ready; then those that are named at the end of the report go.")
	for i, o := range p.Webhooks {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			hooks.WriteString("---\n")
		}
		hooks.Write(text)
	}
	files := []File{{"settings.yaml", append([]byte(head), settings...)}, {"plugins.yaml", p.Set}, {"rights.yaml", p.Rights}}
	if len(p.Pods) > 0 {
		files = append(files, File{"deployment.yaml", p.Pods})
	}
	if len(p.Webhooks) > 0 {
		files = append(files, File{"webhooks.yaml", hooks.Bytes()})
	}
	return files, nil
}

// Report says what becomes of everything, what differs first.
func (p *Plan) Report(w io.Writer) {
	count := map[Fate]int{}
	for _, o := range p.Outcomes {
		count[o.Fate]++
	}
	fmt.Fprintf(w, "istiod of the revision %s in %s: %d things, of which %d differ\n", cmp.Or(p.Revision, "default"),
		p.Namespace, len(p.Outcomes), count[Differs])
	for _, fate := range []Fate{Differs, Setting, Plugin, Same, Moot} {
		if count[fate] == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s:\n", fate)
		all := slices.Clone(p.Outcomes)
		slices.SortStableFunc(all, func(a, b Outcome) int { return strings.Compare(a.What, b.What) })
		for _, o := range all {
			if o.Fate == fate {
				fmt.Fprintf(w, "  %s: %s\n", o.What, o.Text)
			}
		}
	}
	if len(p.Leaving) > 0 {
		fmt.Fprintln(w, "\nOf istiod's, these go once ours are there; with both, pods would be asked about twice:")
		for _, l := range p.Leaving {
			fmt.Fprintf(w, "  kubectl delete %s\n", strings.ToLower(l))
		}
	}
}
