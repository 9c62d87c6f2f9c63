package mcs

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/mcs"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// deriver makes a service, and endpoints, of each service that is imported somewhere. It makes anew
// what a change concerns.
type deriver struct {
	// exports, imports and endpoints by the service, NAMESPACE/HOST.
	exports, imports, endpoints *state.Index
	services                    *state.Decoder[*pb.Service]
	declared                    *state.Decoder[*mcs.Service]
	members                     *state.Decoder[*pb.Endpoint]
	// published are the rows of each service, by table and key.
	published map[string]map[string]map[string]*sdk.Row
}

func newDeriver() *deriver {
	d := &deriver{
		services: state.Of[pb.Service](), members: state.Of[pb.Endpoint](), published: map[string]map[string]map[string]*sdk.Row{},
		declared: state.NewDecoder(func(b []byte) (*mcs.Service, error) { return mcs.Of(&sdk.Row{Payload: b}) }),
	}
	of := func(r *pb.Row) []string {
		s, err := d.declared.Row(r)
		if err != nil {
			return nil // registries write no such row
		}
		return []string{sdk.ServiceKey(s.Namespace, s.Host)}
	}
	d.exports, d.imports = state.NewIndex(mcs.Exports, of), state.NewIndex(mcs.Imports, of)
	d.endpoints = state.NewIndex(state.Endpoints, func(r *pb.Row) []string {
		namespace, rest, _ := strings.Cut(r.Key, "/")
		host, _, _ := strings.Cut(rest, "/")
		return []string{sdk.ServiceKey(namespace, host)}
	})
	return d
}

// Derive is a sdk.Deriver's.
func (d *deriver) Derive(_ context.Context, change *state.Change, out sdk.Publisher) error {
	touched := slices.Concat(d.exports.Apply(change), d.imports.Apply(change), d.endpoints.Apply(change), change.Keys[state.Services])
	if change.Before == nil {
		touched = slices.AppendSeq(touched, maps.Keys(d.published))
	}
	slices.Sort(touched)
	upserts, deletes, made := map[string][]*sdk.Row{}, map[string][]string{}, map[string]map[string]map[string]*sdk.Row{}
	for _, key := range slices.Compact(touched) {
		before, now := d.published[key], d.rows(change.State, key)
		made[key] = now
		for _, table := range tables {
			for _, k := range slices.Sorted(maps.Keys(now[table])) {
				if old, row := before[table][k], now[table][k]; old == nil || old.Created != row.Created || !bytes.Equal(old.Payload, row.Payload) {
					upserts[table] = append(upserts[table], row)
				}
			}
			for _, k := range slices.Sorted(maps.Keys(before[table])) {
				if now[table][k] == nil {
					deletes[table] = append(deletes[table], k)
				}
			}
		}
	}
	for _, table := range tables {
		if len(upserts[table])+len(deletes[table]) == 0 {
			continue
		}
		if err := out.Update(table, upserts[table], deletes[table]); err != nil {
			return err
		}
	}
	for key, rows := range made {
		if d.published[key] = rows; rows == nil {
			delete(d.published, key)
		}
	}
	return nil
}

// tables in the order in which they are published.
var tables = []string{state.Services, state.Endpoints}

// rows makes the rows of a service, by its key; nil: it has none, as nobody imports it or no
// cluster has it.
func (d *deriver) rows(s *state.State, key string) map[string]map[string]*sdk.Row {
	real, ok := d.services.Get(s.Table(state.Services), key)
	imports := d.of(s, d.imports, mcs.Imports, key)
	if !ok || len(imports) == 0 {
		return nil
	}
	exported, imported := map[string]bool{}, map[string]bool{}
	for _, e := range d.of(s, d.exports, mcs.Exports, key) {
		exported[e.Cluster] = true
	}
	service := *real
	service.Host, service.Addresses, service.ClusterAddresses = imports[0].ClusterSetHost(), imports[0].Addresses, map[string]string{}
	for _, i := range imports {
		imported[i.Cluster] = true
		service.ClusterAddresses[i.Cluster] = strings.Join(i.Addresses, ",")
	}
	row := sdk.ServiceRow(&service)
	row.Created = s.Row(state.Services, key).Created
	out := map[string]map[string]*sdk.Row{state.Services: {row.Key: row}, state.Endpoints: {}}
	for _, at := range d.endpoints.Keys(key) {
		e, ok := d.members.Get(s.Table(state.Endpoints), at)
		if !ok {
			continue
		}
		is := *e
		is.Host, is.SameCluster = service.Host, !exported[e.Cluster] || !imported[e.Cluster]
		of := &sdk.Row{Key: strings.Replace(at, "/"+real.Host+"/", "/"+service.Host+"/", 1), Payload: is.AppendTo(nil)}
		out[state.Endpoints][of.Key] = of
	}
	return out
}

// of are the exports or imports of a service, in order of their clusters.
func (d *deriver) of(s *state.State, index *state.Index, table, key string) (out []*mcs.Service) {
	for _, k := range index.Keys(key) {
		if is, ok := d.declared.Get(s.Table(table), k); ok {
			out = append(out, is)
		}
	}
	return out
}
