package sds

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// mostComplaints is how much is said at once of what is wrong for the proxies of one view: what one
// account asks for hides nobody else's faults.
const mostComplaints = 32

// complaint is a fault of a view.
type complaint struct {
	what string
	err  error
	rows []state.Name
}

// complain reports all that is wrong now, as faults of the rows that were looked at and of those
// that name the secret.
func (e *engine) complain(out sdk.Output) {
	for _, number := range slices.Sorted(maps.Keys(e.views)) {
		v := e.views[number]
		if v.stale {
			v.complaints, v.stale = e.complaintsOf(v), false
		}
		for _, c := range v.complaints {
			out.Fault(c.what, c.err, c.rows...)
		}
	}
}

// count is 1 for an answer with a problem.
func count(a *answer) int {
	if a.problem == "" {
		return 0
	}
	return 1
}

// log logs what is wrong with a name, unless many of the view's are wrong.
func (v *view) log(name, problem string, out sdk.Output) {
	switch {
	case v.wrong <= mostComplaints:
		out.Log(sdk.Warn, "a secret is not served as it should be", "secret", shown(name), "proxies", v.caller.String(), "reason", problem)
	case !v.many:
		out.Log(sdk.Warn, "further secrets are not served as they should be, which are not logged one by one", "proxies", v.caller.String())
	}
	v.many = v.wrong > mostComplaints
}

// unsure makes what is wrong be looked at anew: other rows name secrets.
func unsure(views map[uint64]*view) {
	for _, v := range views {
		v.stale = true
	}
}

func (e *engine) complaintsOf(v *view) (all []complaint) {
	var names []string
	beyond := ""
	for name, a := range v.answers {
		if a.problem != "" {
			names = append(names, name)
		}
		if a.over {
			beyond = a.problem
		}
	}
	if beyond != "" {
		all = append(all, complaint{what: fmt.Sprintf("secrets beyond maxObjects for proxies of %s", v.caller), err: errors.New(beyond)})
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), mostComplaints)] {
		a := v.answers[name]
		looked := slices.Concat(a.rows, a.missing)
		rows := slices.Clone(looked)
		for _, at := range e.naming.of(name, v.caller.namespace) {
			if !slices.Contains(looked, at) {
				rows = append(rows, at)
			}
		}
		all = append(all, complaint{fmt.Sprintf("secret %s for proxies of %s", shown(name), v.caller), errors.New(a.problem), rows})
	}
	if more := len(names) - mostComplaints; more > 0 {
		about := 1 << (bits.Len(uint(more)) - 1) // not each number of them is news
		all = append(all,
			complaint{what: fmt.Sprintf("further secrets for proxies of %s", v.caller), err: fmt.Errorf("%d or more can't be served either", about)})
	}
	return all
}

// shown is a name as it is shown: what a client says may be long.
func shown(name string) string {
	const most = 512
	if len(name) <= most {
		return name
	}
	return fmt.Sprintf("%s… (%d characters)", strings.ToValidUTF8(name[:most/4], ""), len(name))
}
