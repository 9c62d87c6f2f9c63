package environment

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

const (
	policyTable = "policies"
	standIn     = "~all"
)

// bounded returns an environment in which a namespace may cost so much.
func bounded(bytes int64) *Environment {
	return Bounded(0, Bounds{Bytes: bytes, Policies: []string{policyTable}, Free: []string{"root"}, Instead: func(namespace string) (string, *pb.Row) {
		return policyTable, row(namespace+"/"+standIn, "deny")
	}})
}

// roomFor returns the bound of a namespace that has room for so many rows of a thousand bytes: five
// eighths of it are theirs.
func roomFor(rows int64) int64 { return (2*rows + 1) * Cost("t", made("evil/a", 1, 1000)) / 2 * 8 / 5 }

// made returns a row of an age and a size.
func made(key string, created int64, bytes int) *pb.Row {
	return &pb.Row{Key: key, Created: created, Payload: []byte(strings.Repeat("x", bytes))}
}

// accounted fails where what is said to be used is not what the rows cost that are let in.
func accounted(t *testing.T, e *Environment) {
	t.Helper()
	want := map[space]int64{}
	for table, rows := range letIn(e) {
		for name, r := range rows {
			namespace := NamespaceOf(r.Key)
			if name.shard != e.Spaces.own && namespace != "" && !e.Spaces.free[namespace] {
				want[space{namespace, table == policyTable}] += Cost(table, r)
			}
		}
	}
	for of, p := range e.Spaces.pools {
		if p.used != want[of] {
			t.Fatalf("%v: %d bytes are said to be used, and it is %d", of, p.used, want[of])
		}
		delete(want, of)
	}
	if len(want) > 0 {
		t.Fatalf("nobody counts %v", want)
	}
}

// letIn returns all rows that are let in, by table.
func letIn(e *Environment) map[string]map[seat]*pb.Row {
	out := map[string]map[seat]*pb.Row{}
	put := func(s *Shard, n Name, r *pb.Row) {
		if out[n.Table] == nil {
			out[n.Table] = map[seat]*pb.Row{}
		}
		if out[n.Table][seat{s, n}] = r; r == nil {
			delete(out[n.Table], seat{s, n})
		}
	}
	for table, t := range e.Pending.tables {
		for key, rows := range t.rows {
			for _, o := range rows {
				put(o.shard, Name{table, key}, o.row)
			}
		}
	}
	for n, shards := range e.Pending.waits {
		for s, r := range shards {
			put(s, n, r)
		}
	}
	return out
}

// oldest are the keys of the oldest rows that fit.
func oldest(rows []*pb.Row, most int64) []string {
	rows = slices.SortedFunc(slices.Values(rows), func(a, b *pb.Row) int { return int(a.Created - b.Created) })
	var keys []string
	for _, r := range rows {
		if most -= Cost("t", r); most < 0 {
			break
		}
		keys = append(keys, r.Key)
	}
	slices.Sort(keys)
	return keys
}

func servedKeys(e *Environment, table string) []string {
	return slices.Sorted(maps.Keys(served(e, table)))
}

// TestTheOldestAreKept: whatever the order in which rows come, in how many pieces, and what goes
// between, the same ones are kept, and after a restart, too.
func TestTheOldestAreKept(t *testing.T) {
	const bytes = 1 << 20
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		e, shards := bounded(bytes), []*Shard{{Name: "one"}, {Name: "two", Order: 1}}
		there := map[string]*pb.Row{}
		of := func(key string) *Shard { return shards[len(key)%2] }
		for i, created := range r.Perm(60) {
			key := fmt.Sprintf("evil/%d", i)
			there[key] = made(key, int64(created+1), r.IntN(3000))
		}
		kept := slices.Collect(maps.Keys(there))
		slices.Sort(kept)
		r.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
		for i, key := range kept {
			e.Pending.Update(of(key), "t", []*pb.Row{clone(there[key])}, nil)
			if i > 0 && r.IntN(6) == 0 {
				gone := kept[r.IntN(i)]
				e.Pending.Update(of(gone), "t", nil, []string{gone})
				if there[gone] != nil && r.IntN(2) == 0 {
					e.Pending.Update(of(gone), "t", []*pb.Row{clone(there[gone])}, nil)
				} else {
					delete(there, gone)
				}
			}
			if r.IntN(4) == 0 {
				e.Pending.Commit(false, nil)
			}
			accounted(t, e)
		}
		for _, key := range kept {
			if there[key] == nil {
				e.Pending.Update(of(key), "t", nil, []string{key})
			}
		}
		e.Pending.Commit(false, nil)
		want := oldest(slices.Collect(maps.Values(there)), e.Spaces.bounds.most(false))
		if diff := cmp.Diff(want, servedKeys(e, "t")); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		again := bounded(bytes)
		for _, i := range r.Perm(len(shards)) {
			rows := map[string]*pb.Row{}
			for key, row := range there {
				if of(key) == shards[i] {
					rows[key] = clone(row)
				}
			}
			again.Pending.Replace(shards[i], map[string]map[string]*pb.Row{"t": rows})
		}
		again.Pending.Commit(false, nil)
		if diff := cmp.Diff(want, servedKeys(again, "t")); diff != "" {
			t.Fatalf("seed %d, after a restart: %s", seed, diff)
		}
		if n := len(e.Spaces.Crowded()); n != 0 && len(want) == len(there) || n == 0 && len(want) != len(there) {
			t.Errorf("seed %d: %d namespaces are said to be full, %d of %d rows are kept", seed, n, len(want), len(there))
		}
	}
}

func clone(r *pb.Row) *pb.Row {
	return &pb.Row{Key: r.Key, Created: r.Created, Source: r.Source, Payload: r.Payload}
}

// TestRandomHistoriesOfFullNamespaces: what is used is what the rows cost that are let in, within
// the bound unless rows were taken back, whoever says what, and what a shard consists of is what it
// said.
func TestRandomHistoriesOfFullNamespaces(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 8))
		e := bounded(512 << 10)
		e.Unseen.Seen()
		shards := []*Shard{{Name: "a"}, {Name: "b", Order: 1}, {Name: "derived", Order: 2, Derived: true}}
		said, held := map[seat]*pb.Row{}, false
		for range 150 {
			s, key, table := shards[r.IntN(3)],
				fmt.Sprintf("%s/%d", []string{"evil", "shop", "root"}[r.IntN(3)], r.IntN(20)),
				[]string{"t", policyTable}[r.IntN(2)]
			switch r.IntN(10) {
			case 0:
				e.Pending.Commit(false, nil)
			case 1:
				e.Pending.Commit(false, e.Pending.Of(s))
			case 2:
				e.Unseen.Seen()
			case 3:
				if r.IntN(4) == 0 {
					held = e.Held.Hold(func(UnseenRow) bool { return r.IntN(2) == 0 }) > 0 || held
				} else {
					e.Held.Release(s)
				}
			case 4:
				tables := e.Pending.Shard(s)
				if n := (Name{table, key}); tables[table][key] != nil {
					delete(tables[table], key)
					delete(said, seat{s, n})
				}
				e.Held.Drop(s)
				e.Pending.Replace(s, tables)
			case 5:
				delete(said, seat{s, Name{table, key}})
				e.Pending.Update(s, table, nil, []string{key})
			default:
				row := made(key, int64(r.IntN(5)), r.IntN(4000))
				said[seat{s, Name{table, key}}] = row
				e.Pending.Update(s, table, []*pb.Row{row}, nil)
			}
			accounted(t, e)
			for _, p := range e.Spaces.pools {
				if !held && p.used > p.most {
					t.Fatalf("seed %d: %d of %d bytes", seed, p.used, p.most)
				}
			}
			if held {
				continue
			}
			for _, s := range shards {
				for table, rows := range e.Pending.Shard(s) {
					for key, r := range rows {
						if !Equal(r, said[seat{s, Name{table, key}}]) {
							t.Fatalf("seed %d: shard %s has %s %s, which it did not say", seed, s.Name, table, key)
						}
					}
				}
			}
		}
	}
}

// TestWhatIsRefusedComesInByItself, oldest first, once there is room.
func TestWhatIsRefusedComesInByItself(t *testing.T) {
	e, s := bounded(roomFor(3)), &Shard{Name: "files"}
	e.Pending.Update(s, "t", []*pb.Row{made("evil/a", 1, 1000), made("evil/b", 2, 1000), made("evil/c", 3, 1000)}, nil)
	e.Pending.Commit(false, nil)
	e.Pending.Update(s, "t", []*pb.Row{made("evil/e", 5, 1000)}, nil)
	e.Pending.Update(s, "t", []*pb.Row{made("evil/d", 4, 1000)}, nil)
	e.Pending.Update(s, "t", []*pb.Row{made("shop/x", 9, 1000), made("root/x", 9, 100_000), made("nobody's", 9, 100_000)}, nil)
	e.Pending.Commit(false, nil)
	if diff := cmp.Diff([]string{"evil/a", "evil/b", "evil/c", "nobody's", "root/x", "shop/x"}, servedKeys(e, "t")); diff != "" {
		t.Fatal(diff)
	}
	full := e.Spaces.Crowded()
	if len(full) != 1 || full[0].Namespace != "evil" || full[0].Policies || full[0].Rows != 2 || full[0].Forgotten != 0 {
		t.Fatalf("said to be full: %+v", full)
	}
	changes := e.Spaces.Changes()
	e.Pending.Update(s, "t", nil, []string{"evil/a"})
	if e.Spaces.Changes() == changes {
		t.Error("nobody is told that a row was let in")
	}
	e.Pending.Commit(false, nil)
	if diff := cmp.Diff([]string{"evil/b", "evil/c", "evil/d", "nobody's", "root/x", "shop/x"}, servedKeys(e, "t")); diff != "" {
		t.Fatal(diff)
	}
	e.Pending.Update(s, "t", nil, []string{"evil/b", "evil/c", "evil/d"})
	e.Pending.Commit(false, nil)
	if diff := cmp.Diff([]string{"evil/e", "nobody's", "root/x", "shop/x"}, servedKeys(e, "t")); diff != "" || len(e.Spaces.Crowded()) > 0 {
		t.Fatal(diff, e.Spaces.Crowded())
	}
}

// TestRowsOfUnknownAge: those that are there stay.
func TestRowsOfUnknownAge(t *testing.T) {
	e, s := bounded(roomFor(3)), &Shard{Name: "files"}
	e.Pending.Update(s, "t", []*pb.Row{made("evil/m", 0, 1000), made("evil/n", 0, 1000), made("evil/o", 0, 1000)}, nil)
	e.Pending.Commit(false, nil)
	e.Pending.Update(s, "t", []*pb.Row{made("evil/z", 0, 1000)}, nil)
	e.Pending.Update(s, "t", []*pb.Row{made("evil/a", 0, 1000)}, nil)
	e.Pending.Commit(false, nil)
	if diff := cmp.Diff([]string{"evil/m", "evil/n", "evil/o"}, servedKeys(e, "t")); diff != "" {
		t.Fatal(diff)
	}
	e.Pending.Update(s, "t", nil, []string{"evil/m"})
	e.Pending.Commit(false, nil)
	if diff := cmp.Diff([]string{"evil/n", "evil/o", "evil/z"}, servedKeys(e, "t")); diff != "" {
		t.Errorf("who waited longest is not let in: %s", diff)
	}
}

// TestARowThatGrowsTooMuch stays as it was, until there is room.
func TestARowThatGrowsTooMuch(t *testing.T) {
	e, s := bounded(roomFor(3)), &Shard{Name: "files"}
	e.Pending.Update(s, "t", []*pb.Row{made("evil/a", 1, 1000), made("evil/b", 2, 1000), made("evil/c", 3, 1000)}, nil)
	e.Pending.Commit(false, nil)
	e.Pending.Update(s, "t", []*pb.Row{made("evil/a", 1, 3000)}, nil)
	e.Pending.Commit(false, nil)
	size := func(key string) int { return len(served(e, "t")[key]) }
	if size("evil/a") != 1000 || size("evil/c") != 1000 {
		t.Errorf("sizes %d %d", size("evil/a"), size("evil/c"))
	}
	for r := range e.Spaces.Refused("evil", false) {
		if r.Key != "evil/a" || !r.Kept || len(r.Row.Payload) != 3000 {
			t.Errorf("refused: %v", r)
		}
	}
	e.Pending.Update(s, "t", []*pb.Row{made("evil/a", 1, 900)}, nil)
	e.Pending.Commit(false, nil)
	if size("evil/a") != 900 || len(e.Spaces.Crowded()) != 0 {
		t.Errorf("size %d, full: %v", size("evil/a"), e.Spaces.Crowded())
	}
	e.Pending.Update(s, "t", []*pb.Row{made("evil/a", 1, 3000)}, nil)
	e.Pending.Update(s, "t", nil, []string{"evil/b"})
	e.Pending.Commit(false, nil)
	if size("evil/a") != 3000 {
		t.Errorf("size %d when there is room", size("evil/a"))
	}
}

// TestPoliciesHaveRoomOfTheirOwn: no flood of other rows has one refused, whichever comes first.
func TestPoliciesHaveRoomOfTheirOwn(t *testing.T) {
	for _, first := range []bool{true, false} {
		e, s := bounded(256<<10), &Shard{Name: "files"}
		policies := func() {
			e.Pending.Update(s, policyTable, []*pb.Row{made("evil/deny", 1<<40, 1000), made("evil/strict", 1<<40, 1000)}, nil)
		}
		if first {
			policies()
		}
		for i := range 1000 {
			e.Pending.Update(s, "t", []*pb.Row{made(fmt.Sprintf("evil/%d", i), int64(i+1), i)}, nil)
		}
		if !first {
			policies()
		}
		e.Pending.Commit(false, nil)
		if diff := cmp.Diff([]string{"evil/deny", "evil/strict"}, servedKeys(e, policyTable)); diff != "" {
			t.Error(diff)
		}
		if full := e.Spaces.Crowded(); len(full) != 1 || full[0].Policies || full[0].Forgotten == 0 {
			t.Errorf("full: %+v", full)
		}
	}
}

// TestAPolicyThatIsRefusedForbidsAll: as long as one is, what stands for it is served, also for
// those of which not even the name is kept, and for one that can't be changed.
func TestAPolicyThatIsRefusedForbidsAll(t *testing.T) {
	const standsIn = "evil/" + standIn
	e, s := bounded(roomFor(6)*5/2), &Shard{Name: "files"} // a quarter of it is for policies
	var rows, gone = []*pb.Row{}, []string{}
	for i := range 40 {
		key := fmt.Sprintf("evil/%02d", i)
		if rows = append(rows, made(key, int64(i+1), 1000)); i >= 6 {
			gone = append(gone, key)
		}
	}
	has := func() bool { return slices.Contains(servedKeys(e, policyTable), standsIn) }
	e.Pending.Update(s, policyTable, rows[:6], nil)
	e.Pending.Commit(false, nil)
	if has() {
		t.Fatal("all is forbidden, and no policy was refused")
	}
	e.Pending.Update(s, policyTable, rows[6:], nil)
	e.Pending.Commit(false, nil)
	if full := e.Spaces.Crowded(); !has() || len(full) != 1 || !full[0].Policies || full[0].Rows == 0 ||
		full[0].Forgotten == 0 || full[0].Rows+full[0].Forgotten != 34 {
		t.Fatalf("forbidden: %v, full: %+v", has(), full)
	}
	e.Pending.Update(&Shard{Name: "other"}, policyTable, []*pb.Row{made(standsIn, 1, 1)}, nil)
	e.Pending.Commit(false, nil)
	if r := e.Committed.Row(Name{policyTable, standsIn}, false); string(r.Payload) != "deny" {
		t.Errorf("a row of the same name is served instead: %s", r.Payload)
	}
	e.Pending.Update(s, policyTable, nil, gone[1:])
	e.Pending.Commit(false, nil)
	if !has() {
		t.Error("one policy is refused, and not all is forbidden")
	}
	e.Pending.Update(s, policyTable, nil, gone[:1])
	e.Pending.Commit(false, nil)
	if full := e.Spaces.Crowded(); len(full) != 0 || string(served(e, policyTable)[standsIn]) == "deny" {
		t.Errorf("all that was refused is gone, and all is forbidden: %+v", full)
	}
	e.Pending.Update(s, policyTable, []*pb.Row{made("evil/00", 1, 5000)}, nil)
	e.Pending.Commit(false, nil)
	if !has() {
		t.Error("a policy can't be changed, and not all is forbidden")
	}
}

// TestWhatWasForgottenComesAgain when its shard says all it has.
func TestWhatWasForgottenComesAgain(t *testing.T) {
	e, s := bounded(roomFor(3)), &Shard{Name: "files"}
	all := map[string]*pb.Row{}
	for i := range 30 {
		r := made(fmt.Sprintf("evil/%02d", i), int64(i+1), 1000)
		all[r.Key] = r
	}
	say := func() {
		rows := map[string]*pb.Row{}
		for key, r := range all {
			rows[key] = clone(r)
		}
		e.Pending.Replace(s, map[string]map[string]*pb.Row{"t": rows})
		e.Pending.Commit(false, nil)
	}
	say()
	want := []string{"evil/00", "evil/01", "evil/02"}
	if full := e.Spaces.Crowded(); len(full) != 1 || full[0].Forgotten == 0 {
		t.Fatalf("full: %+v", full)
	}
	if diff := cmp.Diff(want, servedKeys(e, "t")); diff != "" {
		t.Fatal(diff)
	}
	say()
	if diff := cmp.Diff(want, servedKeys(e, "t")); diff != "" {
		t.Errorf("said again: %s", diff)
	}
	for i := range 28 {
		delete(all, fmt.Sprintf("evil/%02d", i))
	}
	say()
	if diff := cmp.Diff([]string{"evil/28", "evil/29"}, servedKeys(e, "t")); diff != "" || len(e.Spaces.Crowded()) > 0 {
		t.Error(diff, e.Spaces.Crowded())
	}
}
