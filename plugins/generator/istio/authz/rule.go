package authz

import (
	"errors"
	"fmt"

	rbac "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	security "istio.io/api/security/v1beta1"
)

// context is what the meaning of a rule depends on besides its text.
type context struct {
	// tcp: connections are looked at, not requests; what only requests have can't be asked.
	tcp bool
	// lenient: a value that can't be expressed is left out, which makes the rule wider. That is
	// right where a rule denies, not where it allows: there the whole rule goes.
	lenient bool
	// wide: it is on the safe side to match more than is meant. A rule that denies is where it says
	// what is wanted, one that allows where it says what is not.
	wide bool
	// namespace of the policy completes names of service accounts.
	namespace string
	domains   []string
}

var errHTTPOnly = errors.New("only requests have it")

// clause is a question with the answers that are wanted, and those that are not.
type clause[T any] struct {
	values, not []string
	// ask makes one matcher for any of the values; nothing where none of them can be expressed and
	// the rule is lenient.
	ask func(in *context, values []string) ([]T, error)
}

// rule makes Envoy's form of a rule: any of its operations (permissions) and any of its sources
// (principals), both with its conditions.
func (in *context) rule(r *security.Rule) (*rbac.Policy, error) {
	permissions, principals, err := conditions(r.GetWhen())
	if err != nil {
		return nil, err
	}
	out := &rbac.Policy{}
	for _, to := range orOne(r.GetTo()) {
		all, err := conjunction(in, append(operation(to.GetOperation()), permissions...), permissionNot)
		if err != nil {
			return nil, err
		}
		out.Permissions = append(out.Permissions, permissionAll(all))
	}
	for _, from := range orOne(r.GetFrom()) {
		all, err := conjunction(in, append(source(from.GetSource()), principals...), principalNot)
		if err != nil {
			return nil, err
		}
		out.Principals = append(out.Principals, principalAll(all))
	}
	return out, nil
}

// orOne is a list, or one empty element.
func orOne[T any](list []*T) []*T {
	if len(list) == 0 {
		return []*T{nil}
	}
	return list
}

// conjunction makes matchers that must all hold.
func conjunction[T any](in *context, clauses []clause[T], negate func(T) T) ([]T, error) {
	var out []T
	wanted, unwanted := *in, *in
	wanted.wide, unwanted.wide = in.lenient, !in.lenient
	for _, c := range clauses {
		want, err := c.make(&wanted, c.values)
		if err != nil {
			return nil, err
		}
		not, err := c.make(&unwanted, c.not)
		if err != nil {
			return nil, err
		}
		out = append(out, want...)
		for _, n := range not {
			out = append(out, negate(n))
		}
	}
	return out, nil
}

func (c *clause[T]) make(in *context, values []string) ([]T, error) {
	if len(values) == 0 {
		return nil, nil
	}
	out, err := c.ask(in, values)
	if err != nil && in.lenient {
		return nil, nil
	}
	return out, err
}

// each asks for every value by itself.
func each[T any](one func(in *context, value string) (T, error), anyOf func([]T) T) func(*context, []string) ([]T, error) {
	return func(in *context, values []string) ([]T, error) {
		var out []T
		for _, v := range values {
			m, err := one(in, v)
			switch {
			case err == nil:
				out = append(out, m)
			case !in.lenient:
				return nil, err
			}
		}
		if len(out) == 0 {
			return nil, nil
		}
		return []T{anyOf(out)}, nil
	}
}

// conditions reads `when`: what asks for the destination is a permission for Envoy, what asks for
// the source or the request a principal.
func conditions(list []*security.Condition) ([]clause[*rbac.Permission], []clause[*rbac.Principal], error) {
	var permissions []clause[*rbac.Permission]
	var principals []clause[*rbac.Principal]
	for _, w := range list {
		if ask := destinationCondition(w.Key); ask != nil {
			permissions = append(permissions, clause[*rbac.Permission]{w.Values, w.NotValues, ask})
		} else if ask := sourceCondition(w.Key); ask != nil {
			principals = append(principals, clause[*rbac.Principal]{w.Values, w.NotValues, ask})
		} else {
			return nil, nil, fmt.Errorf("unknown condition %q", w.Key)
		}
	}
	return permissions, principals, nil
}
