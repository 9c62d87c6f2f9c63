package status_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/parttest"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/status"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is about what is shown of a state,
// in the words of package parttest (World, Declared, Ready, Messages, Told). Lines that make the
// state, with # comments:
//
//	bounded N                     a namespace may have rows of so many bytes; the first line
//	PLUGIN is KIND …, PLUGIN joins …, PLUGIN leaves; PLUGIN silent, PLUGIN overdue N, PLUGIN dies over TABLE KEY, PLUGIN heard
//	PLUGIN rows TABLE …           rows that it publishes; aside PLUGIN: they are dropped
//	serves [without PLUGIN …]     what was said is committed and shown
//	owes N PLUGIN …               a revision is given to these, which are not done with it
//	PROXY connects, PROXY wants TYPE [NAME …], PROXY leaves, PROXY accepts TYPE, PROXY refuses TYPE NAME WHY, PROXY has all
//	pins PROXY, stages PROXY      it sees what all see now, whatever comes
//
// And those that ask, whose answers are as the line says:
//
//	view …, stream PROXY …, table NAME …, dump PROXY …, plugin NAME …, rows PLUGIN TABLE …, hiding PLUGIN …
//	stale PLUGIN WHY|no, partial …, held PLUGIN …
//	proxy NAME TYPE …, why PROXY TYPE NAME: …, made ROW …: …, origin TABLE KEY: …, through TABLE KEY: …, derived: …
//	subjects …, affected …, effects …, blamed AFTER UNTIL [patched] ROW …: …, reached TABLE KEY: …
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	*parttest.World
	sv      *serving.Parts
	pages   *status.Pages
	origins *status.Origins
	overdue map[string]int
	subject status.Subject
	told    report.Explanation
}

func play(t *testing.T, script string) {
	w := &world{World: parttest.New(), overdue: map[string]int{}}
	w.begin(environment.Bounds{})
	w.Play(t, script, w.line)
}

func (w *world) begin(bounds environment.Bounds) {
	cfg := w.Config()
	cfg.Bounds = bounds
	w.Begin(state.New(cfg))
	w.sv = serving.New(w.State, serving.Config{
		Patience: cfg.Timing.HoldMax, Instead: func(state.Shown) (held, judges bool) { return false, false },
	})
	w.pages = status.NewPages(w.State, w.sv, cfg.Timing.HoldMax, func(s *state.Session) (int, time.Time) {
		return w.overdue[s.Name()], time.Unix(1000, 0)
	})
	w.origins = status.NewOrigins(w.State, w.sv, w.State.Journal.Served)
}

func (w *world) line(words []string) (known bool, err error) {
	rest := strings.Join(words[1:], " ")
	question, want, _ := strings.Cut(rest, ": ")
	asked := strings.Fields(question)
	switch words[0] {
	case "bounded":
		var n int64
		_, err := fmt.Sscan(rest, &n)
		w.begin(environment.Bounds{Bytes: n})
		return true, err
	case "serves":
		return true, w.serve(words[1:])
	case "aside":
		w.State.Env.Precedence.SetAside(w.State.Roster.Plugins[rest].Shard, true)
	case "owes":
		for _, name := range words[2:] {
			var n uint64
			if _, err := fmt.Sscan(words[1], &n); err != nil {
				return true, err
			}
			w.State.Roster.Session(name).Told(n, w.State.Clock.Now())
		}
	case "pins", "stages":
		w.pin(words[0], rest)
	case "view", "stream", "table", "dump", "plugin", "rows", "hiding", "stale", "partial", "held":
		return true, w.page(words[0], words[1:], rest)
	case "proxy", "why", "made", "origin", "through", "derived", "subjects", "affected", "effects", "blamed", "reached":
		return true, w.origin(words[0], asked, want, rest)
	default:
		return w.somebody(words)
	}
	return true, nil
}

// serve commits what was said, and shows it.
func (w *world) serve(words []string) error {
	st, now := w.State, w.State.Clock.Now()
	changes := st.Env.Pending.Commit(true, nil)
	number := st.Env.Committed.Number()
	st.Journal.Begin(report.Push{Revision: number, Committed: now}, number, changes, st.Env.Committed)
	late := []string{}
	if len(words) > 1 {
		late = words[1:]
	}
	for _, k := range st.Roster.Sorted() {
		s := k.Session
		if slices.Contains(late, k.Name()) {
			k.GoesWithout(now)
		}
		if s == nil || !s.Generates() {
			continue
		}
		s.Told(number, now)
		s.Finished(number)
		if err := s.Apply(); err != nil {
			return err
		}
		w.sv.Screen.Spoil(s.Maker.Views.Publish())
		w.sv.Screen.Blame(s)
	}
	st.Course.ShowAgain()
	w.sv.Screen.Show()
	st.Journal.End(0, false, now)
	if !st.Course.Withholds(number) && st.Course.Serve(state.Served{Number: number, Partial: late}) {
		st.Env.Unseen.Seen()
	}
	return nil
}

func (w *world) pin(verb, proxy string) {
	pin := &serving.Pinned{Image: w.sv.Screen.Base(), Selects: func(n *corev3.Node) bool { return n.GetId() == proxy }}
	pin.Revision, pin.Proxies = w.State.Course.Served.Number, proxy
	if verb == "pins" {
		w.sv.Screen.Pin(pin)
	} else {
		w.sv.Screen.Stage(pin)
		w.sv.Screen.Show()
	}
}

func (w *world) somebody(words []string) (known bool, err error) {
	switch {
	case len(words) < 2:
		return false, nil
	case words[1] == "is":
		e, err := w.Declared(words[0], words[2:])
		if err == nil {
			w.State.Roster.Declare(state.NewPlugin(e, state.NewShard(e), w.State.Clock.Now()))
		}
		return true, err
	case w.State.Roster.Plugins[words[0]] != nil:
		return w.plugin(w.State.Roster.Plugins[words[0]], words[1], words[2:])
	}
	return w.proxy(words[0], words[1], words[2:])
}

func (w *world) plugin(k *state.Plugin, verb string, words []string) (known bool, err error) {
	now := w.State.Clock.Now()
	switch verb {
	case "told", "ends":
		return false, nil
	case "joins":
		r := w.Ready(k, words)
		k.Says(r)
		k.Shard.Derived = r.Derives
		s := w.Session(k, r)
		k.Joins(s)
		if s.Generates() {
			s.Maker.Begin(r)
		}
		if s.Kind().Patches() {
			k.PatchesBy(w.sv.Patches.NewPatcher(k))
			k.Patcher.Joined()
		}
		return true, nil
	case "leaves":
		k.Leaves(now)
		return true, nil
	case "silent":
		k.Session.Watch.Ping(now)
		k.Session.Watch.Mark()
		return true, nil
	case "overdue":
		var n int
		_, err := fmt.Sscan(words[0], &n)
		w.overdue[k.Name()] = n
		return true, err
	case "heard":
		w.Heard(k.Session, true)
		return true, nil
	case "dies":
		k.Suspect(environment.Changes{words[1]: {words[2]: environment.Change{}}})
		for range 3 {
			k.Suspects.Died()
		}
		return true, nil
	}
	messages, err := w.Messages(verb, words)
	if err != nil {
		return true, err
	}
	for _, m := range messages {
		switch {
		case m.Rows != nil:
			for _, t := range m.Rows.Tables {
				w.State.Env.Pending.Update(k.Shard, t.Table, t.Upserts, t.Deletes)
			}
		case m.Done != nil:
			w.State.Roster.HandleFaults(k.Session, m.Done.Faults, now)
		case m.Lost != nil:
			k.Absence.Begins(m.Lost.Reason, now)
		case m.Patched != nil:
			if k.Patcher.Answered(m.Patched, now) != nil {
				w.sv.Screen.Show()
			}
		default:
			if err := w.sv.Placer.HandleGenerated(k.Session, m); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

func (w *world) proxy(name, verb string, words []string) (known bool, err error) {
	conn, url, known, err := w.Proxy(name, verb, words)
	if conn == nil {
		return known, err
	}
	switch verb {
	case "wants":
		w.sv.Streams.Subscribe(conn, url, parttest.Wish(words[1:]))
	case "leaves":
		w.sv.Streams.Disconnect(conn)
	case "accepts", "refuses":
		served := w.sv.Streams.Pull(conn)
		o := xds.Outcome{Type: url, Number: served.Number}
		if verb == "accepts" {
			o.Version, o.Has = fmt.Sprint("v", served.Number), served.Types[url]
		} else {
			o.Refused = words[1] + ": " + strings.Join(words[2:], " ")
			if b := served.Types[url].Get(words[1]); b != nil {
				o.Culprits = []xds.Culprit{{Body: b, Instead: conn.Outcomes[url].Has.Get(words[1])}}
			}
		}
		w.sv.Streams.Note(conn, o)
	case "has":
		w.State.Journal.HasAll(conn, w.State.Course.Served.Number, w.State.Clock.Now())
	default:
		return false, nil
	}
	return true, nil
}

// page is what is shown of plugins, views and streams.
func (w *world) page(verb string, words []string, rest string) error {
	var all []string
	first, want := words[0], strings.Join(words[1:], " ")
	switch verb {
	case "view":
		for _, v := range w.pages.Views() {
			text := fmt.Sprintf("%s %d of %s for %d: %d, %d bytes %s", v.Type, v.ID, v.Plugin, v.Connections, v.Resources, v.Bytes, v.Label)
			all = append(all, strings.TrimSpace(text))
		}
		return archive.Expect(parttest.List(all, "; ", "nothing"), rest)
	case "stream":
		for _, s := range w.pages.Streams() {
			for url, t := range s.Types {
				text := fmt.Sprintf("%s: all %s, %d names, view %d", parttest.Word(url), archive.YesNo(t.Wildcard), t.Names, t.View)
				if t.Acked != "" {
					text += fmt.Sprintf(", accepted %s of %d", t.Acked, t.AckedRevision)
				}
				if t.Refused != "" {
					text += ", refused " + t.Refused
				}
				if s.Node == first {
					all = append(all, text)
				}
			}
		}
		slices.Sort(all)
	case "table":
		for _, t := range w.pages.Tables() {
			for shard, n := range t.Shards {
				all = append(all, fmt.Sprintf("%s: %s %d", t.Name, shard, n))
			}
			if len(t.Shards) == 0 {
				all = append(all, t.Name)
			}
		}
		slices.Sort(all)
		return archive.Expect(parttest.List(all, "; ", "nothing"), rest)
	case "dump":
		types, found := w.pages.DumpOf(first)
		if !found {
			return archive.Expect("not connected", want)
		}
		for _, t := range types {
			text := parttest.Word(t.Type) + ": " + parttest.Words(t.Type, t.Bodies)
			if t.Sensitive {
				text += " (secret)"
			}
			all = append(all, text)
		}
	case "plugin":
		all = pluginWords(w.pages.PluginRows()[first])
	case "rows":
		paused := 0
		for _, t := range w.pages.TableRows(first, func() { paused++ }) {
			text := fmt.Sprintf("%s: %d served", t.Table, t.Served)
			if t.Held > 0 {
				text += fmt.Sprintf(", %d held", t.Held)
			}
			for _, h := range t.Hidden {
				text += fmt.Sprintf(", %d hidden (%s) as %s: %s", h.Rows, h.Reason, h.Example, h.Text)
			}
			all = append(all, text)
		}
	case "hiding":
		if h, publishes := w.pages.Hiding()[first]; publishes {
			all = append(all, fmt.Sprintf("%d hidden, away %s", h.Hidden, archive.YesNo(!h.Away.IsZero())))
		}
	case "stale":
		s := w.pages.Stale()[first]
		if s.Why == "" {
			return archive.Expect("no", want)
		}
		return archive.Expect(fmt.Sprintf("%s for %s", s.Why, w.State.Clock.Now().Sub(s.Since)), want)
	case "partial":
		r := w.pages.Revision()
		all = append(all, fmt.Sprintf("%d without %s", r.Number, parttest.List(r.Partial, " ", "nobody")))
		for name, since := range r.PartialSince {
			all = append(all, fmt.Sprintf("%s for %s", name, w.State.Clock.Now().Sub(since)))
		}
		return archive.Expect(strings.Join(all, ", "), rest)
	case "held":
		h, err := w.pages.HoldOf(first)
		if err != nil {
			return archive.Expect(err.Error(), want)
		}
		all = append(all, fmt.Sprintf("%d of %d, %d rows, %d proxies, %s", len(w.pages.Held()), 1, h.Rows, h.Proxies, h.Difference))
	}
	return archive.Expect(parttest.List(all, "; ", "nothing"), want)
}

func pluginWords(r status.PluginRows) []string {
	all := []string{fmt.Sprintf("%d rows of revision %d", r.Rows, r.Revision)}
	add := func(what string, words []string) {
		if len(words) > 0 {
			all = append(all, what+" "+strings.Join(words, " "))
		}
	}
	add("reads", r.Reads)
	add("publishes", r.Publishes)
	add("withheld", r.Withheld)
	add("stale", strings.Fields(r.Stale.Why))
	for _, f := range r.Faults {
		text := "fails at " + f.What + ": " + f.Reason
		if f.Skipped {
			text += " (skipped)"
		}
		for _, row := range f.Rows {
			text += " of " + row.Table + " " + row.Key
		}
		all = append(all, text)
	}
	for _, row := range r.Refused {
		all = append(all, fmt.Sprintf("refused %s %s, kept %s", row.Table, row.Key, archive.YesNo(row.Kept)))
	}
	if r.Held != nil {
		text := fmt.Sprintf("held %d for %d:", r.Held.Rows, r.Held.Proxies)
		var names []string
		for _, n := range r.Held.Names {
			names = append(names, " "+n.Table+" "+n.Key)
		}
		slices.Sort(names)
		all = append(all, text+strings.Join(names, ""))
	}
	if r.Away != nil {
		all = append(all, "away: "+r.Away.Why)
	}
	if !r.Sign.IsZero() {
		all = append(all, "seen")
	}
	return all
}

func rowWords(rows []report.RowName) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Table+" "+r.Key)
	}
	return parttest.List(all, ", ", "nothing")
}

// rowNames are rows by words TABLE KEY ….
func rowNames(words []string) (rows []*pb.RowName) {
	for i := 0; i+1 < len(words); i += 2 {
		rows = append(rows, &pb.RowName{Table: words[i], Key: words[i+1]})
	}
	return rows
}

func originWords(o report.Origin) string {
	text := o.Table + " " + o.Key
	switch {
	case o.Gone:
		return text + " (gone)"
	case o.Of != nil:
		text += " of " + o.Of.Table + " " + o.Of.Key
	case o.Source != "":
		text += " from " + o.Source
	}
	text += fmt.Sprintf(" by %s at %d", o.Plugin, o.Revision)
	if o.Since.IsZero() {
		text += ", nobody knows since when"
	}
	return text
}

// origin is what resources are made from.
func (w *world) origin(verb string, words []string, want, rest string) error {
	var all []string
	switch verb {
	case "proxy":
		name, want, _ := strings.Cut(rest, " ")
		p, found := w.origins.Proxy(name)
		if !found {
			return archive.Expect("not connected", want)
		}
		for _, t := range p.Types {
			text := fmt.Sprintf("%s of %s", parttest.Word(t.Type), t.Plugin)
			if t.View != nil {
				text += fmt.Sprintf(" in %d", t.View.ID)
			}
			for _, n := range t.Names {
				text += " " + n.Name
				if n.Version == "" {
					text += "?"
				}
			}
			all = append(all, text)
		}
		if p.Pinned > 0 {
			all = append(all, fmt.Sprintf("pinned to %d, staged %s", p.Pinned, archive.YesNo(p.Staged)))
		}
		return archive.Expect(parttest.List(all, "; ", "nothing"), want)
	case "why":
		return w.why(words, want)
	case "made":
		err := error(nil)
		because := &pb.Because{Rows: rowNames(words)}
		if i := slices.Index(words, "but"); i >= 0 {
			because = &pb.Because{Rows: rowNames(words[:i]), Missing: rowNames(words[i+1:])}
		}
		if words[0] == "unknown" {
			err = errors.New("it does not say")
		}
		e := w.origins.Explained(w.told, w.subject, because, err)
		for _, r := range e.Rows {
			all = append(all, originWords(r))
		}
		if len(e.Missing) > 0 {
			all = append(all, "not there: "+rowWords(e.Missing))
		}
		if e.Unknown != "" {
			all = append(all, e.Unknown+"; it reads "+strings.Join(e.Reads, " "))
		}
		return archive.Expect(parttest.List(all, ", ", "nothing"), want)
	case "origin":
		return archive.Expect(originWords(w.origins.Origin(report.RowName{Table: words[0], Key: words[1]})), want)
	case "through":
		return archive.Expect(rowWords(w.origins.DerivedFrom(w.origins.Origin(report.RowName{Table: words[0], Key: words[1]}))), want)
	case "derived":
		for n, of := range w.origins.Derivations() {
			all = append(all, fmt.Sprintf("%s %s of %s %s", n.Table, n.Key, of.Table, of.Key))
		}
		slices.Sort(all)
		return archive.Expect(parttest.List(all, ", ", "nothing"), rest)
	case "blamed":
		return w.blamed(words, want)
	case "reached":
		p := w.origins.Progress(report.RowName{Table: words[0], Key: words[1]})
		return archive.Expect(fmt.Sprintf("%d of %d wait: %s", len(p.Waiting), p.Proxies, parttest.List(p.Waiting, " ", "nobody")), want)
	}
	return w.effects(verb, rest)
}

// why finds a resource, and says what is known of it by itself.
func (w *world) why(words []string, want string) (err error) {
	w.subject, w.told, err = w.origins.Subject(words[0], parttest.URL(words[1]), words[2])
	if err != nil {
		return archive.Expect(err.Error(), want)
	}
	e := w.told
	text := fmt.Sprintf("by %s in %d", e.Plugin, e.View.ID)
	if e.Version == "" {
		text += ", not there"
	}
	if len(e.Patches) > 0 {
		text += ", patched by " + strings.Join(e.Patches, " ")
	}
	if e.Pinned > 0 {
		text += fmt.Sprintf(", pinned to %d, staged %s, live is another one %s", e.Pinned, archive.YesNo(e.Staged), archive.YesNo(e.Live != e.Version))
	}
	q := w.subject.Question()
	return archive.Expect(text+fmt.Sprintf("; asks %s %d %s", parttest.Word(q.Type), q.View, q.Name), want)
}

// blamed says which rows are at fault for a resource, by `AFTER UNTIL [patched] TABLE KEY …`.
func (w *world) blamed(words []string, want string) error {
	r := &serving.Refused{}
	if _, err := fmt.Sscan(words[0]+" "+words[1], &r.After, &r.Number); err != nil {
		return err
	}
	words = words[2:]
	patched := words[0] == "patched"
	if patched {
		words = words[1:]
	}
	return archive.Expect(rowWords(w.origins.Blamed(r, &pb.Because{Rows: rowNames(words)}, patched)), want)
}

// effects is what is made from rows.
func (w *world) effects(verb, want string) error {
	var all []string
	subjects := w.origins.Subjects()
	slices.SortFunc(subjects, func(a, b status.Subject) int { return strings.Compare(a.Name, b.Name) })
	switch verb {
	case "subjects":
		for _, s := range subjects {
			all = append(all, fmt.Sprintf("%s %d %s", parttest.Word(s.Type), s.View.ID, s.Name))
		}
	case "affected":
		resources, proxies := w.origins.Affected(subjects)
		for _, a := range resources {
			text := fmt.Sprintf("%s %s of %s at %d", parttest.Word(a.Type), a.Name, a.Plugin, a.Proxies)
			if a.Absent {
				text += " (absent)"
			}
			all = append(all, text)
		}
		all = append(all, "proxies "+parttest.List(proxies, " ", "nobody"))
	case "effects":
		f := status.NewEffects()
		written := w.origins.Written()
		for _, s := range subjects { // each is made from the rows that are called as it is
			f.Add(w.origins, s, &pb.Because{Rows: []*pb.RowName{{Table: "n/Rule", Key: s.Name}, {Table: "services", Key: s.Name}}}, written)
		}
		e := f.Report(w.origins)
		for _, r := range e.Rows {
			all = append(all, fmt.Sprintf("%s %s: %d at %d", r.Table, r.Key, r.Resources, r.Proxies))
		}
		if len(e.Unread) > 0 {
			all = append(all, "unread "+strings.Join(e.Unread, " "))
		}
		all = append(all, fmt.Sprintf("%d proxies", e.Proxies))
	}
	return archive.Expect(parttest.List(all, "; ", "nothing"), want)
}
