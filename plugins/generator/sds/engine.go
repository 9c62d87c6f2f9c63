package sds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// caller is whom a secret is for: all proxies of an account in a cluster share a view.
type caller struct{ cluster, namespace, account string }

func (c caller) String() string {
	if c.namespace == "" {
		return "nobody that is known"
	}
	return c.namespace + "/" + c.account
}

// engine implements sdk.Engine.
type engine struct {
	config   Config
	state    *state.State
	gateways gateways
	numbers  map[caller]uint64
	views    map[uint64]*view
	proxies  map[uint64]uint64 // views by connection
	next     uint64
}

// view is what is wanted for a caller.
type view struct {
	caller  caller
	answers map[string]*answer
	proxies int
}

// answer is what was said about a name.
type answer struct {
	body    []byte // nil: there is none
	problem string // why there is no better one; empty: it is as it should be
	reading
}

// reading is the rows that an answer was made from, and those that were looked for in vain.
type reading struct{ rows, missing []state.Name }

func newEngine(c Config) *engine {
	return &engine{
		config: c, state: &state.State{}, gateways: gateways{},
		numbers: map[caller]uint64{}, views: map[uint64]*view{}, proxies: map[uint64]uint64{},
	}
}

func (e *engine) Commit(_ context.Context, change *state.Change, out sdk.Output) error {
	e.state = change.State
	if change.Before == nil || len(change.Keys[kinds.Gateway]) > 0 {
		e.gateways = gatewaysOf(e.state.Table(kinds.Gateway))
	}
	for _, number := range slices.Sorted(maps.Keys(e.views)) {
		v := e.views[number]
		e.answer(number, v, slices.Sorted(maps.Keys(v.answers)), out)
	}
	e.complain(out)
	return nil
}

func (e *engine) Overtake(context.Context, *state.Change, sdk.Output) error {
	return errors.New("no endpoints are read")
}

func (e *engine) Attach(_ context.Context, p *sdk.Proxy, out sdk.Output) error {
	var node corev3.Node
	if err := proto.Unmarshal(p.Node, &node); err != nil {
		return fmt.Errorf("bad xDS node: %w", err)
	}
	number := uint64(0)
	if slices.Contains(p.Types, secretType) {
		number = e.number(e.callerOf(&node, p.Identities), out)
	}
	old := e.proxies[p.Connection]
	if old == number {
		return nil
	}
	e.proxies[p.Connection] = number
	if v := e.views[number]; v != nil {
		v.proxies++
	}
	e.leave(old)
	out.Place(p.Connection, secretType, number)
	return nil
}

// number returns the number of a caller's view, a new one if it has none.
func (e *engine) number(c caller, out sdk.Output) uint64 {
	if n, ok := e.numbers[c]; ok {
		return n
	}
	e.next++
	e.numbers[c] = e.next
	e.views[e.next] = &view{caller: c, answers: map[string]*answer{}}
	facts := map[string]string{"namespace": c.namespace, "account": c.account}
	if c.cluster != "" {
		facts["cluster"] = c.cluster
	}
	out.View(secretType, e.next, c.String(), facts)
	return e.next
}

// callerOf chooses, of the verified identities, the one that the node says it is of; one that fits
// nothing is nobody's.
func (e *engine) callerOf(node *corev3.Node, identities []string) caller {
	f := node.GetMetadata().GetFields()
	namespace, account := f["NAMESPACE"].GetStringValue(), f["SERVICE_ACCOUNT"].GetStringValue()
	if id, ok := istio.ParseNodeID(node.GetId()); ok && namespace == "" {
		namespace = id.Namespace
	}
	said := f["CLUSTER_ID"].GetStringValue()
	cluster := cmp.Or(e.config.ClusterAliases[said], said)
	for _, uri := range identities {
		id, ok := istio.ParseIdentity(uri)
		if ok && (namespace == "" || id.Namespace == namespace) && (account == "" || id.ServiceAccount == account) {
			return caller{cluster, id.Namespace, id.ServiceAccount}
		}
	}
	return caller{}
}

func (e *engine) Detach(connection uint64) {
	e.leave(e.proxies[connection])
	delete(e.proxies, connection)
}

func (e *engine) leave(number uint64) {
	if v := e.views[number]; v != nil {
		v.proxies--
		e.collect(number, v)
	}
}

// collect forgets a view that has no proxies and of which nothing is wanted.
func (e *engine) collect(number uint64, v *view) {
	if v.proxies == 0 && len(v.answers) == 0 {
		delete(e.views, number)
		delete(e.numbers, v.caller)
	}
}

func (e *engine) Want(_ context.Context, _ string, number uint64, names []string, out sdk.Output) error {
	v := e.views[number]
	if v == nil {
		return fmt.Errorf("there is no view %d", number)
	}
	// Secrets are asked for by name; who wants all gets none.
	e.answer(number, v, names, out)
	e.complain(out)
	return nil
}

func (e *engine) Drop(_ string, number uint64, names []string, gone bool) {
	v := e.views[number]
	if v == nil {
		return
	}
	for _, n := range names {
		delete(v.answers, n)
	}
	if gone {
		clear(v.answers)
		e.collect(number, v)
	}
}

// answer says what has changed of some names.
func (e *engine) answer(number uint64, v *view, names []string, out sdk.Output) {
	var said []sdk.Resource
	for _, name := range names {
		before := v.answers[name]
		now := e.find(v.caller, name, before)
		if before == nil || !same(before.body, now.body) {
			said = append(said, sdk.Resource{Name: name, Body: now.body})
		}
		if now.problem != "" && (before == nil || before.problem != now.problem) {
			out.Log(sdk.Warn, "a secret is not served as it should be", "secret", name, "proxies", v.caller.String(), "reason", now.problem)
		}
		v.answers[name] = now
	}
	if len(said) > 0 {
		out.Change(secretType, number, nil, said, nil)
	}
}

// find makes the answer for a name. What is not valid any more keeps what was good last.
func (e *engine) find(c caller, name string, before *answer) *answer {
	now := &answer{}
	r, err := parse(name, c.namespace)
	if err == nil {
		err = e.admit(c, r, &now.reading)
	}
	if err != nil {
		now.problem = err.Error()
		return now
	}
	for _, o := range r.objects() {
		content, ok := e.look(c, o, &now.reading)
		if !ok {
			continue
		}
		if now.body, err = r.make(name, content); err != nil {
			now.problem = fmt.Sprintf("%s: %v", o, err)
			if before != nil && before.body != nil {
				now.body = before.body
				now.problem += "; its last good version stays served"
			}
		}
		return now
	}
	var all []string
	for _, o := range r.objects() {
		all = append(all, o.String())
	}
	now.problem = "there is no " + strings.Join(all, ", nor ")
	return now
}

// look returns the values of an object: of the caller's cluster, or else of the first.
func (e *engine) look(c caller, o secrets.Object, read *reading) (map[string][]byte, bool) {
	places := []string{""}
	if c.cluster != "" && o.Kind == secrets.Secret {
		places = []string{c.cluster, ""}
	}
	for _, o.Cluster = range places {
		at := state.Name{Table: o.Table(), Key: o.Key()}
		row := e.state.Row(at.Table, at.Key)
		if row == nil {
			read.missing = append(read.missing, at)
			continue
		}
		read.rows = append(read.rows, at)
		content, err := secrets.Decode(row)
		if err == nil && content.Missing == "" {
			return content.Data, true
		}
	}
	return nil, false
}

// complain reports all that is wrong now, as faults.
func (e *engine) complain(out sdk.Output) {
	for _, number := range slices.Sorted(maps.Keys(e.views)) {
		v := e.views[number]
		for _, name := range slices.Sorted(maps.Keys(v.answers)) {
			if a := v.answers[name]; a.problem != "" {
				out.Fault(fmt.Sprintf("secret %s for proxies of %s", name, v.caller), errors.New(a.problem), slices.Concat(a.rows, a.missing)...)
			}
		}
	}
}

// Explain implements sdk.Explainer.
func (e *engine) Explain(_ string, number uint64, name string) (rows, missing []state.Name, err error) {
	v := e.views[number]
	if v == nil || v.answers[name] == nil {
		return nil, nil, fmt.Errorf("nobody wants %s", name)
	}
	a := v.answers[name]
	return a.rows, a.missing, nil
}
