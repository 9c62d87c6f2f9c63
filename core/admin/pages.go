package admin

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func (s *Server) plugins(w http.ResponseWriter, _ *http.Request) {
	write(w, append([]Plugin{}, s.cfg.Source.Plugins()...))
}

func (s *Server) budget(w http.ResponseWriter, _ *http.Request) {
	if s.cfg.Budget == nil {
		http.NotFound(w, nil)
		return
	}
	write(w, s.cfg.Budget())
}

func (s *Server) views(w http.ResponseWriter, r *http.Request) {
	want := r.URL.Query().Get("type")
	all := []View{}
	for _, v := range s.cfg.Source.Views() {
		if want == "" || v.Type == typeURL(want) {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b View) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID)) })
	write(w, all)
}

// streams shows streams that who asks may see, in order of nodes; ?proxyID=NODE only that node's.
func (s *Server) streams(w http.ResponseWriter, r *http.Request) {
	want, seen := r.URL.Query().Get("proxyID"), s.cfg.seenBy(askerOf(r))
	page := struct {
		Revision Revision `json:"revision"`
		Streams  []Stream `json:"streams"`
	}{s.cfg.Source.Revision(), []Stream{}}
	for _, v := range s.cfg.Source.Streams() {
		if (want == "" || v.Node == want) && seen(v.Connection) {
			page.Streams = append(page.Streams, v)
		}
	}
	slices.SortFunc(page.Streams, func(a, b Stream) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Connection, b.Connection))
	})
	write(w, page)
}

func (s *Server) tables(w http.ResponseWriter, _ *http.Request) {
	all := append([]Table{}, s.cfg.Source.Tables()...)
	slices.SortFunc(all, func(a, b Table) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		all[i].Secret = s.cfg.Source.SecretTable(all[i].Name)
	}
	write(w, all)
}

// entry is a row on a page.
type entry struct {
	Key         string            `json:"key"`
	Plugin      string            `json:"plugin"`
	Source      string            `json:"source,omitempty"`
	Created     *time.Time        `json:"created,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func newEntry(r *pb.Row) entry {
	e := entry{Key: r.Key, Plugin: r.Shard, Source: r.Source, Labels: redact.Map(r.Labels), Annotations: redact.Map(r.Annotations)}
	if r.Created != 0 {
		t := time.Unix(0, r.Created).UTC()
		e.Created = &t
	}
	return e
}

func (s *Server) services(w http.ResponseWriter, _ *http.Request) {
	type service struct {
		entry
		Service *pb.Service `json:"service,omitempty"`
		Fault   string      `json:"fault,omitempty"`
	}
	all := []service{}
	for _, r := range s.rows(state.Services) {
		v := service{entry: newEntry(r), Service: &pb.Service{}}
		if err := v.Service.Unmarshal(r.Payload); err != nil {
			v.Service, v.Fault = nil, err.Error()
		}
		all = append(all, v)
	}
	write(w, all)
}

// endpoints shows service -> namespace -> Shards -> shard -> endpoints.
func (s *Server) endpoints(w http.ResponseWriter, _ *http.Request) {
	type shards struct {
		Shards map[string][]*pb.Endpoint `json:"Shards"`
	}
	all := map[string]map[string]shards{}
	for _, r := range s.rows(state.Endpoints) {
		e := &pb.Endpoint{}
		if e.Unmarshal(r.Payload) != nil {
			continue
		}
		if all[e.Host] == nil {
			all[e.Host] = map[string]shards{}
		}
		of := all[e.Host][e.Namespace]
		if of.Shards == nil {
			of.Shards = map[string][]*pb.Endpoint{}
			all[e.Host][e.Namespace] = of
		}
		of.Shards[r.Shard] = append(of.Shards[r.Shard], e)
	}
	write(w, all)
}

// rows returns a table's rows in order of keys.
func (s *Server) rows(table string) []*pb.Row { return sortedRows(s.cfg.Source, table) }

func sortedRows(s Source, table string) []*pb.Row {
	rows := slices.Clone(s.Rows(table))
	slices.SortFunc(rows, func(a, b *pb.Row) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Shard, b.Shard)) })
	return rows
}
