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
	naming   naming
	numbers  map[caller]uint64
	views    map[uint64]*view
	proxies  map[uint64]uint64 // views by connection
	next     uint64
	asking   map[secrets.Account]*asking
	requests *requests
	rights   *state.Decoder[secrets.Right]
}

// view is what is wanted for a caller.
type view struct {
	caller  caller
	answers map[string]*answer
	proxies int
	// wrong is how many answers have a problem.
	wrong int
	many  bool // it was said that they are many
	// complaints are what is wrong, if they are not stale.
	complaints []complaint
	stale      bool
}

// answer is what was said about a name.
type answer struct {
	said    bool   // whether anything was
	body    []byte // nil: there is none
	problem string // why there is no better one; empty: it is as it should be
	reading
	// rights: it depends on what the account may do; over: there was no room to ask for what it
	// needs. by is where that is counted.
	rights, over bool
	by           *asking
}

// reading is the rows that an answer was made from, and those that were looked for in vain.
type reading struct {
	rows, missing []state.Name
	// objects are those that it depends on, missed why there is none of some.
	objects []secrets.Object
	missed  []string
}

// read reports whether one of some rows was looked at, or looked for.
func (r *reading) read(rows map[state.Name]bool) bool {
	in := func(at state.Name) bool { return rows[at] }
	return slices.ContainsFunc(r.rows, in) || slices.ContainsFunc(r.missing, in)
}

func newEngine(c Config) *engine {
	return &engine{
		config: c, state: &state.State{}, gateways: gateways{},
		numbers: map[caller]uint64{}, views: map[uint64]*view{}, proxies: map[uint64]uint64{},
		asking: map[secrets.Account]*asking{}, requests: newRequests(), rights: state.NewDecoder(secrets.ParseRight),
	}
}

func (e *engine) Commit(_ context.Context, change *state.Change, out sdk.Output) error {
	e.state = change.State
	e.rights.Forget(secrets.Rights, change)
	if change.Before == nil || len(change.Keys[kinds.Gateway]) > 0 {
		e.gateways = gatewaysOf(e.state.Table(kinds.Gateway))
	}
	if change.Before == nil {
		e.naming = newNaming()
	}
	for table, keys := range change.Keys {
		if table == kinds.Gateway || table == kinds.DestinationRule {
			e.naming.change(e.state, table, keys)
			unsure(e.views)
		}
	}
	rows, all := contents(change)
	for _, number := range slices.Sorted(maps.Keys(e.views)) {
		v := e.views[number]
		var names []string
		for name, a := range v.answers {
			if all || a.read(rows) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			e.answer(number, v, names, out)
		}
	}
	e.moreRoom(out)
	e.complain(out)
	return nil
}

// contents are the rows that have changed of tables that answers are made from row by row, or all:
// a change concerns all answers. DestinationRules only name secrets.
func contents(change *state.Change) (rows map[state.Name]bool, all bool) {
	rows = map[state.Name]bool{}
	for table, keys := range change.Keys {
		switch table {
		case secrets.SecretTable, secrets.ConfigMapTable, secrets.Absences, secrets.Rights:
			for _, key := range keys {
				rows[state.Name{Table: table, Key: key}] = true
			}
		case kinds.DestinationRule:
		default:
			all = all || len(keys) > 0
		}
	}
	return rows, all || change.Before == nil
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
	e.moreRoom(out) // who waits comes first
	// Secrets are asked for by name; who wants all gets none.
	e.answer(number, v, names, out)
	e.complain(out)
	return nil
}

// Rest implements sdk.Rester: what there was no room for gets what others have left.
func (e *engine) Rest(_ context.Context, out sdk.Output) (freed bool) {
	if e.moreRoom(out) {
		e.complain(out)
	}
	return false
}

// moreRoom answers for names that waited for room, and reports whether there were any.
func (e *engine) moreRoom(out sdk.Output) bool {
	all := e.roomFor()
	for _, w := range all {
		e.answer(w.view, e.views[w.view], []string{w.name}, out)
	}
	return len(all) > 0
}

func (e *engine) Drop(_ string, number uint64, names []string, gone bool) {
	v := e.views[number]
	if v == nil {
		return
	}
	if gone {
		names = slices.Collect(maps.Keys(v.answers))
	}
	for _, n := range names {
		a := v.answers[n]
		if a == nil {
			continue
		}
		e.hold(waiting{number, n}, a, nil)
		v.wrong -= count(a)
		delete(v.answers, n)
	}
	if v.stale = true; len(v.answers) == 0 {
		v.answers = map[string]*answer{} // one that was large stays so
	}
	e.collect(number, v)
}

// answer says what has changed of some names.
func (e *engine) answer(number uint64, v *view, names []string, out sdk.Output) {
	var told []sdk.Resource
	for _, name := range names {
		before := v.answers[name]
		if before == nil {
			before = &answer{}
		}
		now := e.find(v.caller, name, before)
		if now.said && !(before.said && same(before.body, now.body)) {
			told = append(told, sdk.Resource{Name: name, Body: now.body})
		}
		v.wrong += count(now) - count(before)
		if now.problem != "" && before.problem != now.problem {
			v.log(name, now.problem, out)
		}
		e.hold(waiting{number, name}, before, now)
		v.answers[name], v.stale = now, true
	}
	if len(told) > 0 {
		out.Change(secretType, number, nil, told, nil)
	}
}

// find makes the answer for a name. Sources are asked for what it means once it is known that the
// account may have it. What is not valid any more keeps what was good last, and while a source has
// not said what is wanted, what was said before stays.
func (e *engine) find(c caller, name string, before *answer) *answer {
	now := &answer{said: true}
	r, err := secrets.ParseReference(name, c.namespace)
	if err == nil {
		err = e.admit(c, r, &now.reading)
	}
	if err != nil {
		now.problem = err.Error()
		return now
	}
	known, err := e.allowed(c, r, now)
	switch {
	case !known:
		now.said, now.body, now.problem, now.objects = before.said, before.body, before.problem, before.objects
		return now
	case err != nil:
		now.problem = err.Error()
		return now
	}
	objects := e.candidates(c, r)
	if err := e.fits(e.account(c), objects); err != nil {
		now.problem, now.over = err.Error(), true
		return now
	}
	now.objects = objects
	e.content(r, name, before, now)
	return now
}

// content looks for what a reference means in the objects of its answer.
func (e *engine) content(r secrets.Reference, name string, before, now *answer) {
	for _, o := range now.objects {
		content, absent, known := e.look(o, &now.reading)
		switch {
		case !known:
			now.said, now.body, now.problem = before.said, before.body, before.problem
			return
		case absent != "":
			now.missed = append(now.missed, absent)
			continue
		}
		var err error
		if now.body, err = resource(r, name, content.Data); err != nil {
			now.problem = fmt.Sprintf("%s: %v", o, err)
			if before.body != nil {
				now.body = before.body
				now.problem += "; its last good version stays served"
			}
		}
		return
	}
	now.problem = strings.Join(now.missed, ", and ")
}

// candidates are the objects that a reference may mean for a caller, in the order in which they are
// looked for: those of its own cluster, and then of the first.
func (e *engine) candidates(c caller, r secrets.Reference) []secrets.Object {
	var out []secrets.Object
	for _, o := range r.Objects() {
		if o.Cluster = e.remote(c); o.Cluster != "" && !r.Gateway && o.Kind == secrets.Secret {
			out = append(out, o)
		}
		o.Cluster = ""
		out = append(out, o)
	}
	return out
}

// remote returns the caller's cluster if it is another than the first.
func (e *engine) remote(c caller) string {
	if c.cluster != "" && e.state.Row(clusterTable, c.cluster) != nil {
		return c.cluster
	}
	return ""
}

// allowed says why an account may not have a Secret, if so, once that is known. What a Gateway
// names is allowed by that, and whom to trust is no secret.
func (e *engine) allowed(c caller, r secrets.Reference, now *answer) (known bool, err error) {
	if !e.config.Kubernetes || r.Gateway || r.Roots {
		return true, nil
	}
	now.rights = true
	at := state.Name{Table: secrets.Rights, Key: e.account(c).Key()}
	row := e.state.Row(at.Table, at.Key)
	if row == nil {
		now.missing = append(now.missing, at)
		return false, nil
	}
	now.rows = append(now.rows, at)
	right, err := e.rights.Row(row)
	if err == nil && !right.Allowed {
		err = errors.New(right.Reason)
	}
	return true, err
}

func (e *engine) account(c caller) secrets.Account {
	return secrets.Account{Cluster: e.remote(c), Namespace: c.namespace, Name: c.account}
}

// look returns an object's values, or why there is no such object, once that is known: where no
// source is asked, what has no row is not there.
func (e *engine) look(o secrets.Object, read *reading) (content secrets.Content, absent string, known bool) {
	at := state.Name{Table: o.Table(), Key: o.Key()}
	if row := e.state.Row(at.Table, at.Key); row != nil {
		read.rows = append(read.rows, at)
		content, err := secrets.Decode(row)
		if err != nil {
			absent = fmt.Sprintf("%s: %v", o, err)
		}
		return content, absent, true
	}
	read.missing = append(read.missing, at)
	absent = "there is no " + o.String()
	if !e.config.Kubernetes {
		return content, absent, true
	}
	at = state.Name{Table: secrets.Absences, Key: o.AbsenceKey()}
	row := e.state.Row(at.Table, at.Key)
	if row == nil {
		read.missing = append(read.missing, at)
		return content, absent, false
	}
	read.rows = append(read.rows, at)
	if why, err := secrets.DecodeAbsence(row); err == nil {
		absent = why.Reason
	}
	return content, absent, true
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
