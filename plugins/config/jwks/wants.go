package jwks

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// want is how a key set is got: where the issuer at URI says (Discover), from URI itself (Direct),
// or, where some rules name it as an issuer and others as a key set, as whichever it is.
type want struct {
	URI              string
	Discover, Direct bool
}

// wanted is what rules ask for.
type wanted struct {
	// sets are the key sets, by the key of their row; namespaces are those whose rules ask for
	// each, in order.
	sets       map[string]want
	namespaces map[string][]string
	// patience is the most that a rule which asks for a set says it may take; 0 where none says
	// anything. It is no part of want: whoever changes it has nothing fetched anew.
	patience map[string]time.Duration
	// refused are how many more sets rules of a namespace ask for than they may, and one of them.
	refused map[string]refused
}

type refused struct {
	sets  int
	first string
}

// wants returns what rules ask for, at most so many sets for those of one namespace: older rules go
// first. Of rules that ask for the same, the most patient counts. Resources that can't be read ask
// for nothing: who checks them says so.
func wants(s *state.State, most int) wanted {
	out := wanted{sets: map[string]want{}, namespaces: map[string][]string{}, patience: map[string]time.Duration{}, refused: map[string]refused{}}
	counts := map[string]int{}
	for _, row := range byAge(s) {
		spec, err := kinds.Decode[*security.RequestAuthentication](row)
		if err != nil {
			continue
		}
		namespace, _, _ := strings.Cut(row.Key, "/")
		for _, r := range spec.JwtRules {
			if w := wantOf(r); w.URI != "" && out.add(namespace, w, most, counts) {
				out.patience[w.URI] = max(out.patience[w.URI], r.Timeout.AsDuration())
			}
		}
	}
	for _, list := range out.namespaces {
		slices.Sort(list)
	}
	return out
}

// byAge are the rows of rules, the oldest first.
func byAge(s *state.State) []*pb.Row {
	return slices.SortedFunc(maps.Values(maps.Collect(s.Table(kinds.RequestAuthentication).All())), func(a, b *pb.Row) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Key, b.Key))
	})
}

// wantOf is what a rule asks for; without a URI: nothing.
func wantOf(r *security.JWTRule) want {
	switch {
	case r.Jwks != "":
		return want{}
	case r.JwksUri != "":
		return want{URI: r.JwksUri, Direct: true}
	}
	return want{URI: r.Issuer, Discover: true}
}

// add takes a set for a namespace that may have so many, and reports whether it may have this one.
func (all *wanted) add(namespace string, w want, most int, counts map[string]int) bool {
	key := w.URI
	if !slices.Contains(all.namespaces[key], namespace) {
		if counts[namespace] >= most {
			no := all.refused[namespace]
			no.first = cmp.Or(no.first, key)
			no.sets++
			all.refused[namespace] = no
			return false
		}
		counts[namespace]++
		all.namespaces[key] = append(all.namespaces[key], namespace)
	}
	have := all.sets[key]
	all.sets[key] = want{URI: key, Discover: w.Discover || have.Discover, Direct: w.Direct || have.Direct}
	return true
}

// tooMany says which namespaces ask for more than they may; nil: none does.
func (all *wanted) tooMany(most int) error {
	var wrong []error
	for _, namespace := range slices.Sorted(maps.Keys(all.refused)) {
		no := all.refused[namespace]
		wrong = append(wrong, fmt.Errorf("rules of namespace %q ask for %d key sets more than the %d that one may have (maxPerNamespace), such as %s: "+
			"those of the oldest rules are fetched, and tokens of the others' issuers are refused", namespace, no.sets, most, no.first))
	}
	return errors.Join(wrong...)
}
