package kinds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// Refusal says in words what proxies refuse of what was made from a row.
func Refusal(r sdk.Blame) string {
	if r.Resource == "" { // the object itself is refused
		return r.Reason
	}
	what := "those that refuse it have what they accepted before, or nothing"
	if r.Held {
		what = "the others of their namespace that have not accepted it have what most had before, new ones too"
	}
	refused := r.Type[strings.LastIndexAny(r.Type, "./")+1:] + " " + r.Resource
	if r.Parts != "" {
		refused = r.Parts + " of " + refused
	}
	if r.Proxies == 0 { // those that refused it are gone
		return fmt.Sprintf("%s, which was made from it, is held, as proxies refused it that are gone: others of their namespace have what most had before: %s",
			refused, r.Reason)
	}
	return fmt.Sprintf("proxies refuse %s, which was made from it (%s): %s", refused, what, r.Reason)
}

// mostRefusal is how long the text of an object's refusals may be, in bytes.
const mostRefusal = 1000

// Refusals says the first of an object's refusals, and how many more there are.
func Refusals(all []string) string {
	slices.Sort(all)
	text := all[0]
	if len(all) > 1 {
		text += fmt.Sprintf("; and %d more", len(all)-1)
	}
	if len(text) > mostRefusal {
		text = strings.ToValidUTF8(text[:mostRefusal-len("…")], "") + "…"
	}
	return text
}
