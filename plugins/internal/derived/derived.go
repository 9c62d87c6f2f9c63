// Package derived is what plugins share that derive Istio's resources of objects of other kinds:
// they give rows to a graph (sdk/incr), publish what has changed of what the graph derives, and say
// what is wrong with the objects.
package derived

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Deriver is an sdk.Deriver. It gives rows to a graph, and publishes what the graph derives of
// them. The roots whose results are published are named by Add.
type Deriver struct {
	// Plugin is whose faults these are, such as config/gatewayapi.
	Plugin string
	// Graph is the graph, Tables are those that Load takes rows of for the next wave. Load gets nil
	// for a row that is gone; after an error the row must count as it was.
	Graph  *incr.Graph
	Tables []string
	Load   func(table, key string, row *sdk.Row) error
	// Tell is called after each wave and returns all that is wrong with objects.
	Tell func() []kinds.Fault

	roots []func() error
	// loaded are the keys that the graph has, by table.
	loaded map[string]map[string]bool
	// faults are rows that could not be read.
	faults map[state.Name]error
	shown  kinds.FaultSet
	// left is what was derived and isn't published yet, by table and key; nil: it is gone.
	left map[string]map[string]*sdk.Row
}

// Add has d publish, as rows of a table, what of makes of a root's values; nil: there is no row. It
// is called before Derive is.
func Add[V any](d *Deriver, table string, root *incr.SetRoot[string, V], of func(key string, v V) (*sdk.Row, error)) {
	AddBy(d, table, root, func(key string) string { return key }, of)
}

// AddBy is Add for a root whose keys are no keys of rows; key says which they are.
func AddBy[K comparable, V any](d *Deriver, table string, root *incr.SetRoot[K, V], key func(K) string, of func(key string, v V) (*sdk.Row, error)) {
	d.roots = append(d.roots, func() error {
		upserts, removes := root.Delta()
		if d.left[table] == nil {
			d.left[table] = map[string]*sdk.Row{}
		}
		for _, k := range removes {
			d.left[table][key(k)] = nil
		}
		var errs []error
		for _, i := range upserts {
			r, err := of(key(i.Key), i.Value)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			d.left[table][key(i.Key)] = r
		}
		return errors.Join(errs...)
	})
}

// Derive is an sdk.Deriver's. A row that can't be read counts as it was, and is a fault for as
// long.
func (d *Deriver) Derive(_ context.Context, change *state.Change, out sdk.Publisher) error {
	if d.loaded == nil {
		d.loaded, d.faults, d.left = map[string]map[string]bool{}, map[state.Name]error{}, map[string]map[string]*sdk.Row{}
		d.shown = kinds.NewFaultSetBy(d.Plugin, time.Now)
	}
	for _, table := range d.Tables {
		if change.Before == nil {
			d.forget(change.State, table)
		}
		for _, key := range change.Keys[table] {
			d.load(table, key, change.State.Row(table, key))
		}
	}
	d.Graph.Wave()
	var errs []error
	for _, gather := range d.roots {
		errs = append(errs, gather())
	}
	if err := d.publish(out); err != nil {
		return err
	}
	return errors.Join(append(errs, d.standing()...)...)
}

// forget takes back what a whole new state hasn't got.
func (d *Deriver) forget(s *state.State, table string) {
	for key := range d.loaded[table] {
		if s.Row(table, key) == nil {
			d.load(table, key, nil)
		}
	}
}

func (d *Deriver) load(table, key string, row *sdk.Row) {
	n := state.Name{Table: table, Key: key}
	delete(d.faults, n)
	if err := d.Load(table, key, row); err != nil {
		d.faults[n] = err
	}
	if d.loaded[table] == nil {
		d.loaded[table] = map[string]bool{}
	}
	if d.loaded[table][key] = true; row == nil {
		delete(d.loaded[table], key)
	}
}

// publish sends what is left to be sent.
func (d *Deriver) publish(out sdk.Publisher) error {
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
	c := d.shown.Show(d.Tell())
	for _, f := range c.New {
		f.Log(out.Log)
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}

// standing are the faults of rows and of functions.
func (d *Deriver) standing() (errs []error) {
	for _, n := range slices.SortedFunc(maps.Keys(d.faults), byName) {
		errs = append(errs, &sdk.Fault{What: n.Table + " " + n.Key, Err: d.faults[n], Rows: []state.Name{n}})
	}
	for _, f := range d.Graph.Failures() {
		errs = append(errs, &sdk.Fault{What: f.Function, Err: f.Err})
	}
	return errs
}

func byName(a, b state.Name) int {
	if c := strings.Compare(a.Table, b.Table); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}

// Row makes the row of a derived resource: it is as old as the object that it was made of, and
// people find that where the row says that it comes from.
func Row(key string, spec proto.Message, annotations map[string]string, from *sdk.Row) (*sdk.Row, error) {
	payload, err := kinds.Encode(spec)
	if err != nil {
		return nil, err
	}
	return &sdk.Row{Key: key, Payload: payload, Annotations: annotations, Created: from.Created, Undated: from.Undated, Source: from.Source}, nil
}

// Place reads where a row says that it comes from: FILE:LINE:COLUMN, or anything else without
// lines.
func Place(source string) (file string, line, column int) {
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
