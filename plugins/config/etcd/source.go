package etcd

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/etcd"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// source is an etcd's Istio resources.
type source struct {
	store
	config Config
}

func newSource(c Config) *source {
	s := &source{config: c, store: store{session: etcd.NewSession(c.Access), prefix: c.Prefix, checker: validation.New()}}
	if c.Writes {
		s.tables = written()
	}
	return s
}

// Run publishes what stands under the prefix, and follows it until ctx ends. An etcd that is away
// changes nothing.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	ctx, cancel := context.WithCancel(ctx)
	var connected sync.WaitGroup
	defer connected.Wait()
	defer cancel()
	connected.Go(func() { s.session.Run(ctx, out.Log) })
	p := newPublication(s.config, out, s.checker)
	f := &etcd.Followed{Session: s.session, Prefix: s.config.Prefix, Most: int(s.config.Limits.Objects), Left: func(n int) { p.left = n }, Log: out.Log}
	return f.Run(ctx, p.handle)
}

// publication is what was published of an etcd.
type publication struct {
	config   Config
	out      sdk.Publisher
	checker  *validation.Checker
	faultSet kinds.FaultSet
	synced   bool
	// rows are the last good ones, by key; faults are what is wrong with a key's present value.
	// left is how many keys are beyond the limit.
	rows   map[string]*sdk.Row
	faults map[string][]kinds.Fault
	left   int
}

func newPublication(c Config, out sdk.Publisher, checker *validation.Checker) *publication {
	return &publication{
		config: c, out: out, checker: checker, faultSet: kinds.NewFaultSet(time.Now), rows: map[string]*sdk.Row{},
		faults: map[string][]kinds.Fault{},
	}
}

// change is what a batch changes in a table.
type change struct {
	upserts []*sdk.Row
	deletes []string
}

// handle publishes what a batch changes.
func (p *publication) handle(b etcd.Batch) error {
	changed := map[string]*change{}
	if b.Whole {
		there := make(map[string]bool, len(b.Put))
		for _, pair := range b.Put {
			there[pair.Key] = true
		}
		for key := range p.rows {
			if !there[key] {
				p.drop(key, changed)
			}
		}
		maps.DeleteFunc(p.faults, func(key string, _ []kinds.Fault) bool { return !there[key] })
	}
	for _, pair := range b.Put {
		p.put(pair, changed)
	}
	for _, key := range b.Gone {
		delete(p.faults, key)
		p.drop(key, changed)
	}
	for _, table := range slices.Sorted(maps.Keys(changed)) {
		if c := changed[table]; len(c.upserts)+len(c.deletes) > 0 {
			if err := p.out.Update(table, c.upserts, c.deletes); err != nil {
				return err
			}
		}
	}
	if err := p.tell(); err != nil || p.synced {
		return err
	}
	p.synced = true
	return p.out.Synced()
}

func in(changed map[string]*change, table string) *change {
	if changed[table] == nil {
		changed[table] = &change{}
	}
	return changed[table]
}

// put takes a key's value. One that is faulty leaves what there was.
func (p *publication) put(pair etcd.Pair, changed map[string]*change) {
	delete(p.faults, pair.Key)
	i, ok := idOf(pair.Key)
	switch {
	case ok && i.table == lead.Table:
		return
	case !ok || !served(i.table):
		p.faults[pair.Key] = []kinds.Fault{
			{File: place(p.config.Prefix, pair.Key), Message: "the key is no GROUP/KIND/NAMESPACE/NAME of a kind that is served", Hint: "it is left out"},
		}
		return
	}
	row, faults := read(p.config.Prefix, i, pair.Value, p.checker)
	if len(faults) > 0 {
		p.faults[pair.Key] = faults
	}
	if row == nil {
		return
	}
	row.Created = pair.Created
	if !p.concerns(row.Labels) {
		p.drop(pair.Key, changed)
		return
	}
	if was := p.rows[pair.Key]; was != nil && equal(was, row) {
		return
	}
	p.rows[pair.Key] = row
	in(changed, i.table).upserts = append(in(changed, i.table).upserts, row)
}

// drop forgets a key.
func (p *publication) drop(key string, changed map[string]*change) {
	row := p.rows[key]
	if row == nil {
		return
	}
	delete(p.rows, key)
	i, _ := idOf(key)
	in(changed, i.table).deletes = append(in(changed, i.table).deletes, row.Key)
}

// concerns reports whether an object with these labels is of this revision.
// Source: Istio, "Canary upgrades": the label istio.io/rev.
func (p *publication) concerns(labels map[string]string) bool {
	revision, given := labels["istio.io/rev"]
	return !given || p.config.Revision == "" || revision == p.config.Revision
}

func equal(a, b *sdk.Row) bool {
	return a.Created == b.Created && a.Undated == b.Undated && bytes.Equal(a.Payload, b.Payload) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// read makes the row of a key's value, YAML or JSON; nil where faults have errors.
func read(prefix string, i id, value []byte, checker *validation.Checker) (*sdk.Row, []kinds.Fault) {
	file := place(prefix, i.key())
	wrong := func(field, code, format string, args ...any) []kinds.Fault {
		return []kinds.Fault{
			{File: file, Kind: i.kind(), Namespace: i.namespace, Name: i.name, Code: code, Field: field, Message: fmt.Sprintf(format, args...)},
		}
	}
	documents := kinds.Reader{Check: checker.Check, Defaulted: checker.Defaulted, Grants: true, Gateways: true}.Read(file, value)
	if len(documents) != 1 {
		return nil, wrong("", kinds.CodeObject, "has %d objects; a key has one", len(documents))
	}
	d := documents[0]
	switch {
	case d.Foreign != "":
		return nil, wrong("", kinds.CodeObject, "is %s, and the key says %s", d.Foreign, i.table)
	case d.Table == "": // its faults say why
		return nil, d.Faults
	case d.Table != i.table:
		return nil, wrong("kind", kinds.CodeObject, "is %s, and the key says %s", d.Table, i.table)
	case d.Name != "" && (d.Namespace != i.namespace || d.Name != i.name):
		return nil, wrong("metadata", kinds.CodeMetadata, "is of %s/%s, and the key says %s/%s", d.Namespace, d.Name, i.namespace, i.name)
	case d.Row != nil && d.Row.Size() > kinds.MaxRow:
		return nil, append(d.Faults, wrong("", kinds.CodeSize, "%s", kinds.TooLarge(d.Row.Size()))...)
	}
	return d.Row, d.Faults
}

// place is what people look a key up by.
func place(prefix, key string) string { return "etcd:" + prefix + key }

// mostFaults are shown.
const mostFaults = 1000

// tell publishes faults and logs those that are new.
func (p *publication) tell() error {
	var all []kinds.Fault
	for _, list := range p.faults {
		all = append(all, list...)
	}
	kinds.SortFaults(all)
	if more := len(all) - mostFaults; more > 0 {
		all = append(all[:mostFaults:mostFaults], kinds.Fault{File: place(p.config.Prefix, ""), Message: fmt.Sprintf("%d more faults", more)})
	}
	if p.left > 0 {
		all = append(all, kinds.Fault{
			File:    place(p.config.Prefix, ""),
			Message: fmt.Sprintf("%d keys are left out: there are more than limits.objects, %d", p.left, p.config.Limits.Objects),
			Reason:  "limits.objects", Left: p.left,
		})
	}
	c := p.faultSet.Show(all)
	for _, f := range c.New {
		f.Log(p.out.Log)
	}
	if c.Healed {
		p.out.Log(sdk.Info, "nothing is wrong with etcd's resources any more")
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return p.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}
