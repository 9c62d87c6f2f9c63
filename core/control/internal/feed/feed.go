package feed

import (
	"cmp"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Feed is what a session reads, and was not sent of it yet.
type Feed struct {
	reads map[string]bool // table -> sources only
	// What it was not sent: everything, or these keys.
	whole bool
	left  environment.Changes
}

// New returns the feed of a session that was sent nothing.
func New(reads []*pb.Read) *Feed {
	f := &Feed{reads: map[string]bool{}, whole: true, left: environment.Changes{}}
	for _, r := range reads {
		f.reads[r.Table] = r.Sources
	}
	return f
}

// Reads reports whether the session reads a table.
func (f *Feed) Reads(table string) bool {
	_, reads := f.reads[table]
	return reads
}

// ReadsAny reports whether it reads any table.
func (f *Feed) ReadsAny() bool { return len(f.reads) > 0 }

// Changed notes the changes of rows that the session reads.
func (f *Feed) Changed(changes environment.Changes) {
	if f.whole {
		return
	}
	for table, keys := range changes {
		sources, reads := f.reads[table]
		if !reads {
			continue
		}
		for key, change := range keys {
			if sources && !change.Source {
				continue
			}
			f.left.Add(table, key, change)
		}
	}
}

// Whole reports whether the session was sent nothing yet.
func (f *Feed) Whole() bool { return f.whole }

// Left are the changes that it was not sent.
func (f *Feed) Left() environment.Changes { return f.left }

// Lacks reports whether there is something that it was not sent, be it that nothing was.
func (f *Feed) Lacks() bool { return f.whole || len(f.left) > 0 }

// Drain returns the rows that the session lacks, as its plugin is to have them; whole: these are
// all. It lacks nothing any more. coming has those of a first revision that is not made yet; nil:
// there is one.
func (f *Feed) Drain(committed *environment.Committed, coming *environment.Pending, but *Suspects) (tables []*pb.TableRows, whole bool) {
	for _, table := range slices.Sorted(maps.Keys(f.reads)) {
		var t *pb.TableRows
		if f.whole {
			rows := committed.Rows(table, f.reads[table])
			if coming != nil {
				rows = maps.All(coming.Coming(table))
			}
			t = &pb.TableRows{Table: table, Upserts: but.rows(table, rows)}
			slices.SortFunc(t.Upserts, func(a, b *pb.Row) int { return cmp.Compare(a.Key, b.Key) })
		} else {
			t = f.rows(committed, table, slices.Sorted(maps.Keys(f.left[table])), but)
		}
		if len(t.Upserts)+len(t.Deletes) > 0 {
			tables = append(tables, t)
		}
	}
	whole = f.whole
	f.whole, f.left = false, environment.Changes{}
	return tables, whole
}

// Ahead returns rows of a table that go ahead of what the session was not sent, by their keys, and
// how many bytes they take.
func (f *Feed) Ahead(committed *environment.Committed, table string, keys map[string]environment.Change, but *Suspects) (t *pb.TableRows, size int) {
	const overhead = 8
	t = f.rows(committed, table, slices.Collect(maps.Keys(keys)), but)
	for _, r := range t.Upserts {
		size += r.Size() + overhead
	}
	for _, key := range t.Deletes {
		size += len(key) + overhead
	}
	return t, size
}

func (f *Feed) rows(committed *environment.Committed, table string, keys []string, but *Suspects) *pb.TableRows {
	t := &pb.TableRows{Table: table}
	for _, key := range keys {
		r := committed.Row(environment.Name{Table: table, Key: key}, f.reads[table])
		if r = but.row(table, key, r); r != nil {
			t.Upserts = append(t.Upserts, r)
		} else {
			t.Deletes = append(t.Deletes, key)
		}
	}
	return t
}
