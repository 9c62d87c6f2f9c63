package plugintest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// storeCases are of plugins that take writes. The objects that they make have names of their own,
// and are deleted.
func storeCases() []suiteCase {
	return []suiteCase{
		{"objects", (*kit).objects},
		{"nothing is lost", (*kit).nothingIsLost},
		{"status apart", (*kit).statusApart},
		{"versions", (*kit).versions},
		{"what can't be done", (*kit).cannotBeDone},
		{"lists in pages", (*kit).pages},
		{"writes at once", (*kit).writesAtOnce},
		{"written objects are rows", (*kit).writtenAreRows},
	}
}

// Store asks the plugin, which must take writes, and returns its answer.
func (h *Harness) Store(m *pb.Store) *pb.Stored {
	h.t.Helper()
	id := beginStore(h, m)
	var got *pb.FromPlugin
	h.wait("Stored", func() bool { got = h.replies[id]; return got != nil })
	return got.Stored
}

// Call calls a method that the plugin offers, and returns its answer.
func (h *Harness) Call(m *pb.Call) *pb.Called {
	h.t.Helper()
	on := *m
	on.Id = h.nextID()
	h.send(&pb.FromCore{Call: &on})
	var got *pb.FromPlugin
	h.wait("Called", func() bool { got = h.replies[on.Id]; return got != nil })
	return got.Called
}

// beginStore asks without waiting.
func beginStore(h *Harness, m *pb.Store) uint64 {
	h.t.Helper()
	on := *m
	on.Id = h.nextID()
	h.send(&pb.FromCore{Store: &on})
	return on.Id
}

// storedOf is an answer, nil where there is none yet.
func storedOf(m *pb.FromPlugin) *pb.Stored {
	if m == nil {
		return nil
	}
	return m.Stored
}

// OnStore sets what answers what the plugin asks of stores: answer is called on a goroutine of its
// own for each request, and need not set the answer's id. Without it each is answered as
// unsupported.
func (h *Harness) OnStore(answer func(*pb.Store) *pb.Stored) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onStore = answer
}

// answerStore answers a request of the plugin; h.mu is held.
func (h *Harness) answerStore(m *pb.Store) {
	answer := h.onStore
	go func() {
		a := &pb.Stored{Code: pb.CodeUnsupported, Error: "this core has no store"}
		if answer != nil {
			a = answer(m)
		}
		a.Id = m.Id
		_ = h.link.Send(h.ctx, &pb.FromCore{Stored: a}) // a plugin that has ended needs none
	}()
}

// thing is a decoded object.
type thing map[string]any

func (o thing) text() []byte {
	text, _ := json.Marshal(o) // it was JSON
	return text
}

func (o thing) meta() map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

func (o thing) version() string { return fmt.Sprint(o.meta()["resourceVersion"]) }

func (o thing) name() string { return fmt.Sprint(o.meta()["name"]) }

func (o thing) key() string { return o.namespace() + "/" + o.name() }

func (o thing) namespace() string { return fmt.Sprint(o.meta()["namespace"]) }

// set sets a key of the metadata.
func (o thing) set(key string, value any) { o.meta()[key] = value }

// table of the object's kind.
func (o thing) table() string {
	group, _, _ := strings.Cut(fmt.Sprint(o["apiVersion"]), "/")
	return group + "/" + fmt.Sprint(o["kind"])
}

func decode(text []byte) (thing, error) {
	var o thing
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	if o["metadata"] == nil {
		return nil, fmt.Errorf("it has no metadata")
	}
	return o, nil
}

// shop is a store in a case, and the objects that it was given.
type shop struct {
	*Harness
	k      *kit
	table  string
	prefix string
	status any
}

// shop starts the plugin.
func (k *kit) shop() *shop {
	if k.Object == "" {
		k.skip("nobody gave an object that the store takes")
	}
	o, err := decode([]byte(k.Object))
	if err != nil {
		k.Fatalf("the object that was given: %v", err)
	}
	s := &shop{Harness: k.start(), k: k, table: o.table(), prefix: fmt.Sprintf("conform-%d", time.Now().UnixNano()), status: o["status"]}
	if !slices.Contains(s.Ready().Writes, s.table) {
		k.skip("the plugin takes no writes of " + s.table)
	}
	s.WaitSynced()
	return s
}

// fresh returns the object that was given, under a name of this case, without a status. It is
// deleted at the case's end.
func (s *shop) fresh(name string) thing {
	o, _ := decode([]byte(s.k.Object)) // shop has read it
	delete(o, "status")
	o.set("name", s.prefix+"-"+name)
	if o.meta()["namespace"] == nil {
		o.set("namespace", "default")
	}
	s.k.Cleanup(func() { s.clear(o) })
	return o
}

// clear deletes an object, whatever keeps it.
func (s *shop) clear(o thing) {
	s.Harness.Store(s.named(pb.VerbPatch, o, &pb.Store{Object: []byte(`{"metadata":{"finalizers":null}}`)}))
	s.Harness.Store(s.named(pb.VerbDelete, o, nil))
}

func (s *shop) named(verb pb.Verb, o thing, m *pb.Store) *pb.Store {
	if m == nil {
		m = &pb.Store{}
	}
	m.Verb, m.Table, m.Namespace, m.Name = verb, s.table, o.namespace(), o.name()
	return m
}

// do asks for what must be done, and returns the object as it is now.
func (s *shop) do(m *pb.Store) thing {
	s.k.Helper()
	m.Table = s.table
	a := s.Store(m)
	if a.Code != pb.CodeOk {
		s.k.Fatalf("%v: it is refused with %v: %s %s%s", m.Verb, a.Code, a.Field, a.Error, s.logged())
	}
	if m.Verb == pb.VerbDelete {
		return nil
	}
	o, err := decode(a.Object)
	if err != nil {
		s.k.Fatalf("%v: the answer's object: %v%s", m.Verb, err, s.logged())
	}
	return o
}

func (s *shop) create(o thing) thing {
	s.k.Helper()
	return s.do(&pb.Store{Verb: pb.VerbCreate, Object: o.text()})
}

func (s *shop) update(o thing) thing {
	s.k.Helper()
	return s.do(&pb.Store{Verb: pb.VerbUpdate, Object: o.text()})
}

func (s *shop) get(o thing) thing {
	s.k.Helper()
	return s.do(s.named(pb.VerbGet, o, nil))
}

func (s *shop) patch(o thing, patch string) thing {
	s.k.Helper()
	return s.do(s.named(pb.VerbPatch, o, &pb.Store{Object: []byte(patch)}))
}

// refuses asks for what must be refused, with a code.
func (s *shop) refuses(what string, m *pb.Store, code pb.Code) *pb.Stored {
	s.k.Helper()
	if m.Table == "" {
		m.Table = s.table
	}
	a := s.Store(m)
	if a.Code != code {
		s.failed("%s: the code is %v (%s), not %v", what, a.Code, a.Error, code)
	}
	if a.Code != pb.CodeOk && a.Error == "" {
		s.failed("%s: the error has no text", what)
	}
	return a
}

func (s *shop) equal(what string, got, want any) {
	s.k.Helper()
	if !reflect.DeepEqual(got, want) {
		s.failed("%s: %v, not %v", what, got, want)
	}
}

// objects: one is made, read, listed, changed in both ways and deleted; each answer is the object
// as it is then.
func (k *kit) objects() {
	s := k.shop()
	o := s.fresh("a")
	made := s.create(o)
	s.equal("the spec of what was made", made["spec"], o["spec"])
	s.equal("the object that is read", s.get(o), made)
	if all := s.list(o.namespace(), 0); all[o.key()] == nil {
		s.failed("a list lacks %s; it has %v", o.key(), slices.Collect(maps.Keys(all)))
	}
	made.set("labels", map[string]any{"one": "1", "two": "2"})
	made = s.update(made)
	made.set("labels", map[string]any{"two": "3"})
	made = s.update(made)
	s.equal("labels after an update that lacks one", made.meta()["labels"], map[string]any{"two": "3"})
	made = s.patch(o, `{"metadata":{"labels":{"two":null,"four":"4"}}}`)
	s.equal("labels after a patch", made.meta()["labels"], map[string]any{"four": "4"})
	s.equal("the spec after a patch of labels", made["spec"], o["spec"])
	s.equal("the object that is read", s.get(o), made)
	s.do(s.named(pb.VerbDelete, o, nil))
	s.refuses("an object that was deleted", s.named(pb.VerbGet, o, nil), pb.CodeNotFound)
}

// nothingIsLost: what is read and given back keeps what a writer need not know; a finalizer holds
// the object.
func (k *kit) nothingIsLost() {
	s := k.shop()
	o := s.fresh("a")
	kept := map[string]any{
		"labels": map[string]any{"app": "web"}, "annotations": map[string]any{"example.com/note": "a\nb \"c\""}, "finalizers": []any{"example.com/conform"},
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "6d1e2c9a-0000-4000-8000-000000000001"}},
	}
	for key, value := range kept {
		o.set(key, value)
	}
	s.create(o)
	check := func(after string, now thing) {
		for key, value := range kept {
			s.equal(key+" after "+after, now.meta()[key], value)
		}
		s.equal("the spec after "+after, now["spec"], o["spec"])
	}
	check("an update", s.update(s.get(o)))
	if s.status != nil {
		now := s.get(o)
		now["status"] = s.status
		check("an update of the status", s.do(&pb.Store{Verb: pb.VerbUpdateStatus, Object: now.text()}))
	}
	check("a patch", s.patch(o, `{}`))
	s.do(s.named(pb.VerbDelete, o, nil))
	if s.get(o).meta()["deletionTimestamp"] == nil {
		s.failed("an object with a finalizer that was deleted has no deletionTimestamp")
	}
	s.patch(o, `{"metadata":{"finalizers":null}}`)
	s.refuses("an object whose last finalizer went", s.named(pb.VerbGet, o, nil), pb.CodeNotFound)
}

// statusApart: the status is changed by updates of the status alone, and these change nothing else.
func (k *kit) statusApart() {
	s := k.shop()
	if s.status == nil {
		k.skip("the object that was given has no status")
	}
	o := s.fresh("a")
	made := s.create(o)
	made["status"] = s.status
	made.set("labels", map[string]any{"of": "status"})
	made = s.do(&pb.Store{Verb: pb.VerbUpdateStatus, Object: made.text()})
	s.equal("the status", made["status"], s.status)
	s.equal("labels after an update of the status", made.meta()["labels"], o.meta()["labels"])
	delete(made, "status")
	s.equal("the status after an update without it", s.update(made)["status"], s.status)
	s.equal("the status after a patch of it", s.patch(o, `{"status":null}`)["status"], s.status)
}

// versions: a write that was made from another version than the store has is a conflict, and
// changes nothing.
func (k *kit) versions() {
	s := k.shop()
	o := s.fresh("a")
	old := s.create(o)
	now := s.patch(o, `{"metadata":{"labels":{"n":"1"}}}`)
	if old.version() == now.version() {
		s.failed("a change left resourceVersion as it was, %s", now.version())
	}
	old.set("labels", map[string]any{"n": "2"})
	s.refuses("an update of an old version", &pb.Store{Verb: pb.VerbUpdate, Object: old.text()}, pb.CodeConflict)
	s.refuses("an update of an old version's status", &pb.Store{Verb: pb.VerbUpdateStatus, Object: old.text()}, pb.CodeConflict)
	s.refuses("a patch of an old version",
		s.named(pb.VerbPatch, o, &pb.Store{Object: []byte(`{"metadata":{"labels":{"n":"3"}}}`), Version: old.version()}),
		pb.CodeConflict)
	s.refuses("the deletion of an old version", s.named(pb.VerbDelete, o, &pb.Store{Version: old.version()}), pb.CodeConflict)
	s.equal("the object after all that", s.get(o), now)
	without, _ := decode(now.text())
	delete(without.meta(), "resourceVersion")
	for _, verb := range []pb.Verb{pb.VerbUpdate, pb.VerbUpdateStatus} {
		if a := s.refuses("an update that names no version", &pb.Store{Verb: verb, Object: without.text()},
			pb.CodeInvalid); a.Field != "metadata.resourceVersion" {
			s.failed("an update that names no version is refused for the field %q, not metadata.resourceVersion", a.Field)
		}
	}
	now = s.do(s.named(pb.VerbPatch, o, &pb.Store{Object: []byte(`{"metadata":{"labels":{"n":"4"}}}`), Version: now.version()}))
	s.do(s.named(pb.VerbDelete, o, &pb.Store{Version: now.version()}))
}

// cannotBeDone: each reason has its code.
func (k *kit) cannotBeDone() {
	s := k.shop()
	o, made := s.fresh("none"), s.fresh("made")
	o.set("resourceVersion", s.create(made).version())
	s.refuses("an object that isn't there", s.named(pb.VerbGet, o, nil), pb.CodeNotFound)
	s.refuses("an update of what isn't there", &pb.Store{Verb: pb.VerbUpdate, Object: o.text()}, pb.CodeNotFound)
	s.refuses("an update of the status of what isn't there", &pb.Store{Verb: pb.VerbUpdateStatus, Object: o.text()}, pb.CodeNotFound)
	s.refuses("a patch of what isn't there", s.named(pb.VerbPatch, o, &pb.Store{Object: []byte(`{}`)}), pb.CodeNotFound)
	s.refuses("the deletion of what isn't there", s.named(pb.VerbDelete, o, nil), pb.CodeNotFound)
	s.refuses("an object that is there", &pb.Store{Verb: pb.VerbCreate, Object: made.text()}, pb.CodeAlreadyExists)
	for _, text := range []string{"", "{", "[]", "null", "{} {}"} {
		s.refuses(fmt.Sprintf("an object that is %q", text), &pb.Store{Verb: pb.VerbCreate, Object: []byte(text)}, pb.CodeInvalid)
		s.refuses(fmt.Sprintf("a patch that is %q", text), s.named(pb.VerbPatch, made, &pb.Store{Object: []byte(text)}), pb.CodeInvalid)
	}
	stranger := s.fresh("stranger")
	stranger["kind"] = "Stranger"
	s.refuses("an object of another kind", &pb.Store{Verb: pb.VerbCreate, Object: stranger.text()}, pb.CodeInvalid)
	s.refuses("no name", &pb.Store{Verb: pb.VerbGet, Namespace: o.namespace()}, pb.CodeInvalid)
	s.refuses("a table that it doesn't write", &pb.Store{Verb: pb.VerbList, Table: "example.com/Stranger"}, pb.CodeUnsupported)
	s.refuses("a verb that nobody knows", &pb.Store{Verb: 99}, pb.CodeUnsupported)
	if k.BadObject == "" {
		return
	}
	bad, err := decode([]byte(k.BadObject))
	if err != nil {
		k.Fatalf("the bad object that was given: %v", err)
	}
	bad.set("name", s.prefix+"-bad")
	bad.set("namespace", made.namespace())
	if a := s.refuses("a bad object", &pb.Store{Verb: pb.VerbCreate, Object: bad.text()}, pb.CodeInvalid); a.Field == "" {
		s.failed("the error of a bad object names no field: %s", a.Error)
	}
}

// list returns the objects of a list by key, read in pages of so many.
func (s *shop) list(namespace string, limit uint32) map[string]thing {
	s.k.Helper()
	all := map[string]thing{}
	for page := ""; ; {
		a := s.refuses("a list", &pb.Store{Verb: pb.VerbList, Namespace: namespace, Limit: limit, Page: page}, pb.CodeOk)
		if limit > 0 && len(a.Objects) > int(limit) {
			s.failed("a page has %d objects, %d were wanted at most", len(a.Objects), limit)
		}
		for _, text := range a.Objects {
			o, err := decode(text)
			if err != nil {
				s.k.Fatalf("an object of a list: %v", err)
			}
			if all[o.key()] != nil {
				s.failed("the list has %s twice", o.name())
			}
			all[o.key()] = o
		}
		if a.Page == "" || a.Code != pb.CodeOk || a.Page == page {
			return all
		}
		page = a.Page
	}
}

// pages: a list in small pages has all objects once, and those of one namespace alone if it is
// asked for them.
func (k *kit) pages() {
	s := k.shop()
	var names []string
	var one thing
	for i := range 5 {
		one = s.fresh(fmt.Sprint(i))
		names = append(names, one.key())
		s.create(one)
	}
	for _, namespace := range []string{one.namespace(), ""} {
		all := s.list(namespace, 2)
		for _, name := range names {
			if all[name] == nil {
				s.failed("a list of namespace %q in pages lacks %s", namespace, name)
			}
		}
	}
	if all := s.list("nobody-has-it", 2); len(all) > 0 {
		s.failed("a namespace without objects has %v", slices.Collect(maps.Keys(all)))
	}
}

// writesAtOnce: of changes of one version at once one is made, and each has its answer.
func (k *kit) writesAtOnce() {
	s := k.shop()
	o := s.fresh("a")
	made := s.create(o)
	var ids []uint64
	for i := range 20 {
		ids = append(ids, beginStore(s.Harness,
			s.named(pb.VerbPatch, o, &pb.Store{Version: made.version(), Object: fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, i)})))
	}
	done, conflicts := 0, 0
	s.wait("20 answers", func() bool {
		done, conflicts = 0, 0
		for _, id := range ids {
			switch a := storedOf(s.replies[id]); {
			case a == nil:
				return false
			case a.Code == pb.CodeOk:
				done++
			case a.Code == pb.CodeConflict:
				conflicts++
			}
		}
		return true
	})
	if done != 1 || conflicts != len(ids)-1 {
		s.failed("of %d changes of one version %d were made and %d are conflicts", len(ids), done, conflicts)
	}
}

// writtenAreRows: what was written is published, and what was deleted goes.
func (k *kit) writtenAreRows() {
	s := k.shop()
	o := s.fresh("a")
	key := o.key()
	s.create(o)
	s.WaitRows(s.table, func(rows map[string]*pb.Row) bool { return rows[key] != nil })
	s.patch(o, `{"metadata":{"labels":{"n":"1"}}}`)
	s.WaitRows(s.table, func(rows map[string]*pb.Row) bool { return rows[key] != nil && rows[key].Labels["n"] == "1" })
	s.do(s.named(pb.VerbDelete, o, nil))
	s.WaitRows(s.table, func(rows map[string]*pb.Row) bool { return rows[key] == nil })
}
