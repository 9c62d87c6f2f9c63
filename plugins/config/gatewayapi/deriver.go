package gatewayapi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/derive"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// deriver gives rows to the graph, and publishes what the graph derives of them.
type deriver struct {
	graph   *incr.Graph
	in      *derive.Inputs
	derived *derive.Derived
	// loaded are the keys that the graph has, by table.
	loaded map[string]map[string]bool
	// faults are rows that could not be read, by table and key.
	faults map[state.Name]error
	// complaints are what is wrong with objects.
	complaints map[derive.Name]*derive.Complaint
	shown      kinds.FaultSet
	// left is what was derived and isn't published yet, by table and key; nil: it is gone.
	left map[string]map[string]*sdk.Row
}

func newDeriver(c Config) *deriver {
	g := incr.New()
	in := derive.NewInputs(g)
	return &deriver{
		graph: g, in: in, loaded: map[string]map[string]bool{}, faults: map[state.Name]error{},
		derived: derive.New(g, in, derive.Config{Domain: c.Domain, ClusterSetHosts: c.ClusterSet, AllCredentials: c.AllSecrets,
			Controller: gateway.GatewayController(c.Controller), Statuses: c.Statuses}),
		complaints: map[derive.Name]*derive.Complaint{}, shown: kinds.NewFaultSet(time.Now), left: map[string]map[string]*sdk.Row{},
	}
}

// Derive is a sdk.Deriver's. A row that can't be read counts as it was, and is a fault for as long.
func (d *deriver) Derive(_ context.Context, change *state.Change, out sdk.Publisher) error {
	for _, table := range derive.Tables() {
		if change.Before == nil {
			d.forget(change.State, table)
		}
		for _, key := range change.Keys[table] {
			d.load(table, key, change.State.Row(table, key))
		}
	}
	d.graph.Wave()
	if err := d.gather(); err != nil {
		return err
	}
	if err := d.publish(out); err != nil {
		return err
	}
	return d.standing()
}

// forget takes back what a whole new state hasn't got.
func (d *deriver) forget(s *state.State, table string) {
	for key := range d.loaded[table] {
		if s.Row(table, key) == nil {
			d.load(table, key, nil)
		}
	}
}

func (d *deriver) load(table, key string, row *sdk.Row) {
	n := state.Name{Table: table, Key: key}
	delete(d.faults, n)
	if err := d.in.Load(table, key, row); err != nil {
		d.faults[n] = err
	}
	if d.loaded[table] == nil {
		d.loaded[table] = map[string]bool{}
	}
	if d.loaded[table][key] = true; row == nil {
		delete(d.loaded[table], key)
	}
}

// gather makes rows of what the wave has changed.
func (d *deriver) gather() error {
	gateways, gone := d.derived.Gateways.Delta()
	err := gather(d, kinds.Gateway, gateways, gone, func(key string, g *derive.Gateway) (*sdk.Row, error) {
		spec := g.Spec
		if g.Deployed != "" {
			spec = proto.CloneOf(spec)
			spec.Selector = map[string]string{istio.GatewayName: g.Deployed}
		}
		return row(key, spec, g.Annotations, g.From)
	})
	routes, gone := d.derived.VirtualServices.Delta()
	err = errors.Join(err, gather(d, kinds.VirtualService, routes, gone, func(key string, v *derive.VirtualService) (*sdk.Row, error) {
		return row(key, v.Spec, v.Annotations, v.From[0].Row)
	}))
	rules, gone := d.derived.DestinationRules.Delta()
	err = errors.Join(err, gather(d, kinds.DestinationRule, rules, gone, func(key string, r *derive.DestinationRule) (*sdk.Row, error) {
		return row(key, r.Spec, r.Annotations, r.From[0])
	}))
	for _, root := range d.derived.Statuses {
		upserts, removes := root.Delta()
		err = errors.Join(err, d.judged(upserts, removes))
	}
	for _, root := range d.derived.Complaints {
		upserts, removes := root.Delta()
		for _, n := range removes {
			delete(d.complaints, n)
		}
		for _, i := range upserts {
			d.complaints[i.Key] = i.Value
		}
	}
	return err
}

func gather[V any](d *deriver, table string, upserts []incr.Item[string, V], removes []string, of func(string, V) (*sdk.Row, error)) error {
	if d.left[table] == nil {
		d.left[table] = map[string]*sdk.Row{}
	}
	for _, key := range removes {
		d.left[table][key] = nil
	}
	var errs []error
	for _, i := range upserts {
		r, err := of(i.Key, i.Value)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d.left[table][i.Key] = r
	}
	return errors.Join(errs...)
}

// judged makes rows of what is to be said in statuses of objects that are in an API server.
func (d *deriver) judged(upserts []incr.Item[derive.Name, *derive.Judged], removes []derive.Name) error {
	if d.left[gatewayapi.Statuses] == nil {
		d.left[gatewayapi.Statuses] = map[string]*sdk.Row{}
	}
	key := func(n derive.Name) string {
		if n.Namespace == "" {
			return gatewayapi.StatusKey(n.Table(), n.Name)
		}
		return gatewayapi.StatusKey(n.Table(), n.Key())
	}
	for _, n := range removes {
		d.left[gatewayapi.Statuses][key(n)] = nil
	}
	var errs []error
	for _, i := range upserts {
		k := key(i.Key)
		if _, there := gatewayapi.Generation(i.Value.Row); !there {
			d.left[gatewayapi.Statuses][k] = nil
			continue
		}
		r, err := i.Value.Judged.Row(k, i.Value.Row)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d.left[gatewayapi.Statuses][k] = r
	}
	return errors.Join(errs...)
}

// row makes the row of a derived resource: it is as old as the object that it was made of, and
// people find that where the row says that it comes from.
func row(key string, spec proto.Message, annotations map[string]string, from *sdk.Row) (*sdk.Row, error) {
	payload, err := kinds.Encode(spec)
	if err != nil {
		return nil, err
	}
	return &sdk.Row{Key: key, Payload: payload, Annotations: annotations, Created: from.Created, Undated: from.Undated, Source: from.Source}, nil
}

// publish sends what is left to be sent.
func (d *deriver) publish(out sdk.Publisher) error {
	for _, table := range slices.Sorted(maps.Keys(d.left)) {
		var upserts []*sdk.Row
		var deletes []string
		for _, key := range slices.Sorted(maps.Keys(d.left[table])) {
			if r := d.left[table][key]; r != nil {
				upserts = append(upserts, r)
			} else {
				deletes = append(deletes, key)
			}
		}
		if len(upserts)+len(deletes) == 0 {
			continue
		}
		if err := out.Update(table, upserts, deletes); err != nil {
			return err
		}
		clear(d.left[table])
	}
	c := d.shown.Show(d.tell())
	for _, f := range c.New {
		out.Log(f.Level(), f.Error())
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}

// tell makes faults of what is wrong with objects: each is served as far as it is right.
func (d *deriver) tell() (all []kinds.Fault) {
	for _, n := range slices.SortedFunc(maps.Keys(d.complaints), derive.Name.Compare) {
		k := d.complaints[n]
		file, line, column := place(k.Row.Source)
		for _, text := range k.Text {
			all = append(all, kinds.Fault{
				File: file, Line: line, Column: column, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, Severity: finding.Warning, Message: text,
			})
		}
	}
	return all
}

// place reads where a row says that it comes from: FILE:LINE:COLUMN, or anything else without
// lines.
func place(source string) (file string, line, column int) {
	rest, last, ok := cutLast(source)
	file, middle, has := cutLast(rest)
	c, err := strconv.Atoi(last)
	l, wrong := strconv.Atoi(middle)
	if !ok || !has || err != nil || wrong != nil {
		return source, 0, 0
	}
	return file, l, c
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// standing are the faults of rows and of functions.
func (d *deriver) standing() error {
	var errs []error
	for _, n := range slices.SortedFunc(maps.Keys(d.faults), byName) {
		errs = append(errs, &sdk.Fault{What: n.Table + " " + n.Key, Err: d.faults[n], Rows: []state.Name{n}})
	}
	for _, f := range d.graph.Failures() {
		errs = append(errs, &sdk.Fault{What: f.Function, Err: f.Err})
	}
	return errors.Join(errs...)
}

func byName(a, b state.Name) int {
	if c := strings.Compare(a.Table, b.Table); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}
