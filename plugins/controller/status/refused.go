package status

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/derive"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// controller is the plugin's sdk.Controller, which is told what proxies refuse.
type controller struct {
	config Config

	mu      sync.Mutex
	refused []sdk.Blame
	// newer is closed when others are refused.
	newer chan struct{}
}

func newController(c Config) *controller { return &controller{config: c, newer: make(chan struct{})} }

// Run implements sdk.Controller.
func (c *controller) Run(ctx context.Context, out sdk.Publisher) error {
	return c.config.run(ctx, out, c)
}

// Blame implements sdk.Blamed.
func (c *controller) Blame(rows []sdk.Blame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = rows
	close(c.newer)
	c.newer = make(chan struct{})
}

// refusals are what is refused now; newer is closed when that changes.
func (c *controller) refusals() (rows []sdk.Blame, newer <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused, c.newer
}

// reasonRefuse is why a route's piece is refused. Source: docs/decisions/votes.md: who has a vote.
const reasonRefuse = "ProxiesRefuse"

// refusal is what proxies refuse of what was made of an object, by the names of its listeners; of a
// route there is one, without a name.
type refusal map[string][]string

// refusalsOf finds the objects, by their keys in Statuses, that the rows were derived from that
// proxies refuse: the rows say so.
func refusalsOf(s *state.State, rows []sdk.Blame) map[string]refusal {
	out := map[string]refusal{}
	for _, r := range rows {
		row := s.Row(r.Table, r.Key)
		if row == nil {
			continue
		}
		for parent := range strings.SplitSeq(row.Annotations[derive.ParentsAnnotation], ",") {
			key, section, ok := ofParent(parent)
			if !ok {
				continue
			}
			if out[key] == nil {
				out[key] = refusal{}
			}
			out[key][section] = append(out[key][section], kinds.Refusal(r))
		}
	}
	return out
}

// ofParent reads what a derived row was made of: KIND/NAME.NAMESPACE, or
// KIND/NAME/SECTION.NAMESPACE.
func ofParent(text string) (key, section string, ok bool) {
	dot := strings.LastIndexByte(text, '.')
	kind, _, ok := strings.Cut(text, "/")
	if !ok || dot < len(kind) {
		return "", "", false
	}
	name, section, _ := strings.Cut(text[len(kind)+1:dot], "/")
	n := derive.Name{Kind: kind, Namespace: text[dot+1:], Name: name}
	if _, known := gatewayapi.Lookup(n.Table()); !known || name == "" || n.Namespace == "" {
		return "", "", false
	}
	return gatewayapi.StatusKey(n.Table(), n.Key()), section, true
}

// says is a refusal's text, of all of its listeners.
func (r refusal) says() string {
	var all []string
	for _, section := range slices.Sorted(maps.Keys(r)) {
		all = append(all, r[section]...)
	}
	return kinds.Refusals(all)
}

// refuse puts into what is wanted that proxies refuse it: a Gateway is not programmed then, nor are
// the listeners that are refused; a route says so to each of its parents.
func (w *wanted) refuse(r refusal) error {
	if len(r) == 0 {
		return nil
	}
	no := metav1.Condition{
		Type: string(gateway.GatewayConditionProgrammed), Status: metav1.ConditionFalse, Reason: string(gateway.GatewayReasonInvalid), Message: r.says(),
	}
	if parents := list(w.status["parents"]); len(parents) > 0 {
		no.Type, no.Status, no.Reason = conditionRefused, metav1.ConditionTrue, reasonRefuse
		return w.each("parents", func(fields) *metav1.Condition { return &no })
	}
	if err := w.condition(no); err != nil {
		return err
	}
	return w.each("listeners", func(l fields) *metav1.Condition {
		texts := r[word(l, "name")]
		if len(texts) == 0 {
			return nil
		}
		one := no
		one.Message = kinds.Refusals(texts)
		return &one
	})
}

// each sets a condition in the elements of a list, if there is one for them.
func (w *wanted) each(field string, of func(fields) *metav1.Condition) error {
	all := list(w.status[field])
	if len(all) == 0 {
		return nil
	}
	for i, e := range all {
		c := of(e)
		if c == nil {
			continue
		}
		value, err := plain(c)
		if err != nil {
			return err
		}
		one, _ := value.(fields)
		e = maps.Clone(e)
		e["conditions"] = anyOf(append(without(list(e["conditions"]), func(f fields) bool { return word(f, "type") == c.Type }), one))
		all[i] = e
	}
	w.status = maps.Clone(w.status)
	w.status[field] = anyOf(all)
	return nil
}
