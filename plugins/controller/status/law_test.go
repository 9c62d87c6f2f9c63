package status

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestLaw: whatever came before, what is to be said of each object is what follows from the state
// alone, and an object of which something else is to be said is queued.
func TestLaw(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 49))
		w, now := newWork(), &state.State{}
		said := map[string]string{}
		for step := range 60 {
			now = state.With(now, state.Revision{Number: uint64(step)}, randomTables(t, r)).State
			w.take(now, nil)
			queued := map[string]bool{}
			for key, ok := w.next(); ok; key, ok = w.next() {
				queued[key] = true
			}
			scratch := newWork()
			scratch.take(now, nil)
			for key := range scratch.rows {
				is, want := saying(t, w, key), saying(t, scratch, key)
				if is != want {
					t.Fatalf("seed %d, step %d: %s: %s, from scratch %s", seed, step, key, is, want)
				}
				if said[key] != want && !queued[key] {
					t.Fatalf("seed %d, step %d: %s is not queued", seed, step, key)
				}
				said[key] = want
			}
			for key := range said {
				if scratch.rows[key] == nil {
					if saying(t, w, key) != "" || !queued[key] {
						t.Fatalf("seed %d, step %d: %s is gone, and queued: %v", seed, step, key, queued[key])
					}
					delete(said, key)
				}
			}
			if len(w.at.endpoints) != len(scratch.at.endpoints) || len(w.at.by) != len(scratch.at.by) || len(w.sums) != len(w.rows) {
				t.Fatalf("seed %d, step %d: something is kept that nobody names", seed, step)
			}
		}
	}
}

func saying(t *testing.T, w *work, key string) string {
	t.Helper()
	want, err := w.want(key)
	if err != nil {
		t.Fatal(err)
	}
	if want == nil {
		return ""
	}
	text, err := json.Marshal(want.status)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(want.generation, want.controllers, string(text))
}

// randomTables are some rows of Gateways' statuses, services and endpoints that come, change or go.
func randomTables(t *testing.T, r *rand.Rand) (out []*pb.TableRows) {
	t.Helper()
	for _, table := range []string{gatewayapi.Statuses, state.Services, state.Endpoints} {
		rows := &pb.TableRows{Table: table}
		for _, n := range r.Perm(6)[:r.IntN(3)] {
			namespace, host := fmt.Sprintf("n%d", n%2), fmt.Sprintf("h%d", n/2)
			row := randomRow(t, r, table, namespace, host)
			if r.IntN(3) == 0 {
				rows.Deletes = append(rows.Deletes, row.Key)
			} else {
				rows.Upserts = append(rows.Upserts, row)
			}
		}
		out = append(out, rows)
	}
	return out
}

func randomRow(t *testing.T, r *rand.Rand, table, namespace, host string) *sdk.Row {
	t.Helper()
	switch table {
	case state.Services:
		return sdk.ServiceRow(&pb.Service{
			Namespace: namespace, Host: host, Addresses: []string{fmt.Sprintf("10.0.0.%d", r.IntN(3))},
			Ports: []*pb.Port{{Number: 80}},
		})
	case state.Endpoints:
		return sdk.EndpointRow(&pb.Endpoint{
			Namespace: namespace, Host: host, PortName: "http", Address: "10.0.0.9", ServicePort: uint32(80 + r.IntN(2)),
			Port: 8080,
		})
	}
	j := &gatewayapi.Judged{Generation: int64(r.IntN(2)), Status: json.RawMessage(`{"conditions":[]}`)}
	if r.IntN(4) > 0 {
		j.At = &gatewayapi.Reachable{Namespace: namespace, Services: []string{host, fmt.Sprintf("h%d", r.IntN(3))},
			Ports: []uint32{80}}
	}
	return rowOf(t, gatewayapi.Gateway, namespace+"/"+host, j)
}
