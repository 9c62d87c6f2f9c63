package outbox

import (
	"fmt"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/google/go-cmp/cmp"
)

// TestLargeStatesAreSplit: a state that is too large for a message comes in several, all but the
// last of which say that there is more; together they are the state.
func TestLargeStatesAreSplit(t *testing.T) {
	job := &Job{Revision: pb.Revision{Number: 3}, Whole: true}
	want := map[string]bool{}
	for table := range 3 {
		rows := &pb.TableRows{Table: fmt.Sprint(table)}
		for key := range 5 {
			rows.Upserts = append(rows.Upserts, &pb.Row{Key: fmt.Sprint(key), Payload: make([]byte, MaxState/3)})
			rows.Deletes = append(rows.Deletes, fmt.Sprintf("gone %d", key))
			want[fmt.Sprintf("%d/%d", table, key)], want[fmt.Sprintf("%d/gone %d", table, key)] = true, true
		}
		job.Tables = append(job.Tables, rows)
	}
	s := newSplit(job)
	got, more := map[string]bool{}, true
	for n := 0; ; n++ {
		m := s.next()
		if m == nil {
			break
		}
		if !more {
			t.Errorf("message %d comes after the one that was the last", n)
		}
		more = m.More
		if m.Whole != (n == 0) || m.Revision.Number != 3 || m.Size() > carrier.MaxMessage {
			t.Errorf("message %d: whole %t, revision %d, %d bytes", n, m.Whole, m.Revision.Number, m.Size())
		}
		for _, rows := range m.Tables {
			if len(rows.Upserts)+len(rows.Deletes) == 0 {
				t.Errorf("message %d has nothing of table %s", n, rows.Table)
			}
			for _, r := range rows.Upserts {
				got[rows.Table+"/"+r.Key] = true
			}
			for _, key := range rows.Deletes {
				got[rows.Table+"/"+key] = true
			}
		}
	}
	if more {
		t.Error("the last message says that there is more")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
