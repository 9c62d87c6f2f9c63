package admin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"google.golang.org/protobuf/types/known/structpb"
)

// explain shows the views of a proxy or, where a resource is named, what it was made from.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	node := q.Get("proxyID")
	if node == "" {
		http.Error(w, "say which proxy: ?proxyID=NODE (/debug/ledger lists those that are connected)", http.StatusBadRequest)
		return
	}
	if q.Get("all") != "" {
		s.explainAll(w, r, node)
		return
	}
	if q.Get("name") == "" {
		p, ok := s.cfg.Source.Proxy(node)
		if !ok {
			http.Error(w, fmt.Sprintf("proxy %q is not connected (/debug/ledger lists those that are)", node), http.StatusNotFound)
			return
		}
		write(w, p)
		return
	}
	e, err := s.cfg.Source.Explain(r.Context(), node, typeURL(q.Get("type")), q.Get("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	write(w, e)
}

// explainAll shows what each resource of a proxy was made from.
func (s *Server) explainAll(w http.ResponseWriter, r *http.Request, node string) {
	p, ok := s.cfg.Source.Proxy(node)
	if !ok {
		http.Error(w, fmt.Sprintf("proxy %q is not connected (/debug/ledger lists those that are)", node), http.StatusNotFound)
		return
	}
	all := []Explanation{}
	for _, t := range p.Types {
		for _, n := range t.Names {
			if e, err := s.cfg.Source.Explain(r.Context(), node, t.Type, n.Name); err == nil { // otherwise it has changed meanwhile
				all = append(all, e)
			}
		}
	}
	write(w, all)
}

// log shows the last lines of the log.
func (s *Server) log(w http.ResponseWriter, _ *http.Request) {
	lines := []string{}
	if s.cfg.Recent != nil {
		lines = s.cfg.Recent()
	}
	write(w, lines)
}

func (s *Server) impact(w http.ResponseWriter, r *http.Request) {
	if name, ok := s.row(w, r); ok {
		write(w, s.cfg.Source.Impact(r.Context(), name))
	}
}

func (s *Server) progress(w http.ResponseWriter, r *http.Request) {
	if name, ok := s.row(w, r); ok {
		p, err := s.cfg.Source.Progress(name)
		writeOr(w, p, err)
	}
}

// row reads the row that a request names.
func (s *Server) row(w http.ResponseWriter, r *http.Request) (RowName, bool) {
	name, err := RowNamed(s.cfg.Source.Tables(), r.URL.Query().Get("row"), func(n RowName) bool {
		return slices.ContainsFunc(s.cfg.Source.Rows(n.Table), func(row *pb.Row) bool { return row.Key == n.Key })
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return name, false
	}
	return name, true
}

// RowNamed reads KIND/NAMESPACE/NAME, or TABLE/KEY of a table that is none of a kind. Case doesn't
// count for the kind; a plural is taken, too. Where several tables are of the kind, the one that
// has the row is meant, as has reports. The error says which kinds the tables are of.
func RowNamed(tables []Table, text string, has func(RowName) bool) (RowName, error) {
	kind, key, ok := strings.Cut(text, "/")
	if !ok || kind == "" || key == "" {
		return RowName{}, fmt.Errorf("%q names no row: KIND/NAMESPACE/NAME is wanted, such as VirtualService/default/reviews", text)
	}
	var kinds []string
	var found []RowName
	for _, t := range tables {
		group, of, config := strings.Cut(t.Name, "/")
		if !config {
			group, of = "", t.Name
		}
		kinds = append(kinds, of)
		if is := strings.EqualFold; is(kind, of) || is(kind, of+"s") || is(kind+"s", of) ||
			strings.HasSuffix(of, "y") && is(kind, strings.TrimSuffix(of, "y")+"ies") {
			found = append(found, RowName{Table: t.Name, Key: key})
		}
		if config && kind == group && strings.HasPrefix(key, of+"/") { // GROUP/KIND/…
			return RowName{Table: t.Name, Key: strings.TrimPrefix(key, of+"/")}, nil
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		slices.Sort(kinds)
		return RowName{}, fmt.Errorf("no table has rows of kind %q; there are %s", kind, strings.Join(kinds, ", "))
	}
	var names []string
	for _, n := range found {
		names = append(names, n.Table)
	}
	if found = slices.DeleteFunc(found, func(n RowName) bool { return !has(n) }); len(found) == 1 {
		return found[0], nil
	}
	return RowName{}, errors.New("several tables have rows of this kind: say which by " + strings.Join(names, "/… or ") + "/…")
}

func (s *Server) pushes(w http.ResponseWriter, r *http.Request) {
	after := uint64(0)
	if r.URL.Query().Has("after") {
		var ok bool
		if after, ok = number(w, r, "after"); !ok {
			return
		}
	}
	all, err := s.cfg.Source.Pushes(after)
	writeOr(w, all, err)
}

// writeOr writes what there is to say, or why there is nothing.
func writeOr(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	write(w, v)
}

// number reads the revision that a request names; false: it was answered that there is none.
func number(w http.ResponseWriter, r *http.Request, name string) (uint64, bool) {
	text := r.URL.Query().Get(name)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		http.Error(w, fmt.Sprintf("?%s=%s: the number of a revision is wanted", name, text), http.StatusBadRequest)
	}
	return n, err == nil
}

func (cfg *Config) diff(w http.ResponseWriter, r *http.Request) {
	from, ok := number(w, r, "from")
	if !ok {
		return
	}
	to, ok := number(w, r, "to")
	if !ok {
		return
	}
	d, err := cfg.Source.Diff(from, to, r.URL.Query().Get("proxyID"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	write(w, masked(d))
}

// masked is a difference without what is secret. Secrets that differ have different numbers in it,
// so that it is seen that they do.
func masked(d Difference) Difference {
	d.Resources = slices.Clone(d.Resources)
	for i := range d.Resources {
		r, without := &d.Resources[i], redact.Numbered()
		r.BeforeValue, r.AfterValue = without(r.Type, r.BeforeValue), without(r.Type, r.AfterValue)
	}
	return d
}

// ProxyStatus is a connected stream, and how far it is with each type.
type ProxyStatus struct {
	Node       string    `json:"node"`
	Connection uint64    `json:"connection"`
	Remote     string    `json:"remote"`
	Protocol   string    `json:"protocol"`
	Since      time.Time `json:"since"`
	// Metadata are some fields of the node's metadata, for tools.
	Metadata map[string]any `json:"metadata,omitempty"`
	// Pinned is the revision that it is pinned to; 0: none. Staged: by the stage of a push.
	Pinned uint64            `json:"pinned,omitempty"`
	Staged bool              `json:"staged,omitempty"`
	Types  []ProxyTypeStatus `json:"types"`
}

// ProxyTypeStatus is how far a stream is with a type.
type ProxyTypeStatus struct {
	xds.TypeStatus
	// State is synced, pending, refused, held (what it refused is held for its view) or not sent,
	// Since is when that began, as far as is known.
	State string            `json:"state"`
	At    time.Time         `json:"since,omitzero"`
	View  report.PlacedView `json:"view"`
	// Held are resources that are held for its view.
	Held []string `json:"held,omitempty"`
}

// ledger shows how far proxies are with each type or, of one, with each resource.
func (s *Server) ledger(w http.ResponseWriter, r *http.Request) {
	if node := r.URL.Query().Get("proxyID"); node != "" {
		all := s.cfg.Source.Ledger(node)
		if len(all) == 0 {
			http.Error(w, fmt.Sprintf("proxy %q is not connected (/debug/ledger lists those that are)", node), http.StatusNotFound)
			return
		}
		write(w, all)
		return
	}
	write(w, s.proxies(askerOf(r)))
}

// proxies are the connected ones that somebody may see.
func (s *Server) proxies(who asker) []ProxyStatus {
	type place struct {
		typeURL string
		view    uint64
	}
	labels, held := map[place]string{}, map[place][]Refusal{}
	for _, v := range s.cfg.Source.Views() {
		labels[place{v.Type, v.ID}] = v.Label
	}
	for _, r := range s.cfg.Source.Refusals() {
		if r.Held {
			at := place{r.Type, r.View.ID}
			held[at] = append(held[at], r)
		}
	}
	views := map[uint64]map[string]StreamType{}
	for _, st := range s.cfg.Source.Streams() {
		views[st.Connection] = st.Types
	}
	pinned := map[uint64]uint64{}
	for _, p := range s.cfg.Source.Pins() {
		for _, x := range p.Pinned {
			pinned[x.Connection] = p.Revision
		}
	}
	stage, staged := s.cfg.Source.Rollout(), map[uint64]bool{}
	for _, x := range stage.Held {
		pinned[x.Connection], staged[x.Connection] = stage.Base, true
	}
	out := []ProxyStatus{}
	for _, st := range s.cfg.Source.Streamed() {
		if !s.cfg.shown(who, st) {
			continue
		}
		p := ProxyStatus{
			Node: st.Node, Connection: st.Connection, Remote: st.Remote, Protocol: st.Protocol, Since: st.Since.UTC(),
			Metadata: shownMetadata(st, s.cfg.Metadata), Types: []ProxyTypeStatus{}, Pinned: pinned[st.Connection], Staged: staged[st.Connection],
		}
		for _, t := range st.Types {
			at := place{t.Type, views[st.Connection][t.Type].View}
			t.Refused = cmp.Or(t.Refused, views[st.Connection][t.Type].Refused)
			var has []string
			for _, r := range held[at] {
				if of := s.cfg.Naming.NamespaceOf; of != nil && t.Refused == "" && slices.Contains(r.Namespaces, of(st.Client)) {
					has = append(has, r.Name)
				}
			}
			p.Types = append(p.Types, newProxyType(t, report.PlacedView{ID: at.view, Label: labels[at]}, has))
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b ProxyStatus) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Connection, b.Connection))
	})
	return out
}

func newProxyType(t xds.TypeStatus, view report.PlacedView, held []string) ProxyTypeStatus {
	out := ProxyTypeStatus{TypeStatus: t, View: view, Held: held}
	switch {
	case t.Sent == "":
		out.State = "not sent"
	case len(held) > 0 && t.Sent == t.Acked:
		out.State, out.At = "held", t.AckedAt
	case t.Refused != "":
		if out.State, out.At = "refused", t.SentAt; !t.RefusedAt.IsZero() {
			out.At = t.RefusedAt
		}
	case t.Sent != t.Acked:
		out.State, out.At = "pending", t.SentAt
	default:
		out.State, out.At = "synced", t.AckedAt
	}
	return out
}

// shownMetadata are the fields of a node's metadata that tools show: texts, and maps of texts.
func shownMetadata(st xds.StreamStatus, keys []string) map[string]any {
	out := map[string]any{}
	for _, key := range keys {
		switch v := st.Client.GetMetadata().GetFields()[key]; v.GetKind().(type) {
		case *structpb.Value_StringValue:
			out[key] = v.GetStringValue()
		case *structpb.Value_StructValue:
			texts := map[string]string{}
			for k, each := range v.GetStructValue().GetFields() {
				if _, text := each.GetKind().(*structpb.Value_StringValue); text {
					texts[k] = each.GetStringValue()
				}
			}
			out[key] = redact.Map(texts)
		}
	}
	return out
}
