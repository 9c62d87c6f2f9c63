package state

import (
	"cmp"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/outbox"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// Source is what a session publishes, until it counts.
type Source struct {
	Synced bool
	// Candidate are a source's rows before Synced, Staged a deriver's before Done.
	Candidate map[string]map[string]*pb.Row
	Staged    []*pb.TableRows
	Live      sizes
	// Lost is why its source is away, as it says, LostAt since when; empty: it isn't.
	Lost   string
	LostAt time.Time
}

// Collect adds rows to the candidate shard.
func (s *Source) Collect(tables []*pb.TableRows) {
	for _, t := range tables {
		if s.Candidate[t.Table] == nil {
			s.Candidate[t.Table] = map[string]*pb.Row{}
		}
		for _, r := range t.Upserts {
			s.Candidate[t.Table][r.Key] = r
		}
		for _, k := range t.Deletes {
			delete(s.Candidate[t.Table], k)
		}
	}
}

// Sync notes that all rows have come, and returns those that count now.
func (s *Source) Sync() (rows map[string]map[string]*pb.Row) {
	rows, s.Synced, s.Candidate = s.Candidate, true, nil
	return rows
}

// Stage keeps rows of a deriver until its Done.
func (s *Source) Stage(tables []*pb.TableRows) { s.Staged = append(s.Staged, tables...) }

// Unstage returns the rows of a deriver that is done, and forgets them.
func (s *Source) Unstage() (tables []*pb.TableRows) {
	tables, s.Staged = s.Staged, nil
	return tables
}

// Lose notes that its source is away.
func (s *Source) Lose(why string, now time.Time) {
	s.Lost, s.LostAt = cmp.Or(why, "it does not say why"), now
}

// Find notes that its source is back.
func (s *Source) Find() { s.Lost = "" }

// sizes are those of the rows that a session has published and not deleted, where they are limited.
type sizes struct {
	tables      map[string]map[string]int32
	rows, bytes int
}

// Count holds a session to its limits of rows and of their bytes.
func (s *sizes) Count(tables []*pb.TableRows, l Limits) error {
	if l.Rows <= 0 && l.Bytes <= 0 {
		return nil
	}
	if s.tables == nil {
		s.tables = map[string]map[string]int32{}
	}
	for _, t := range tables {
		live := s.tables[t.Table]
		if live == nil {
			live = map[string]int32{}
			s.tables[t.Table] = live
		}
		for _, r := range t.Upserts {
			s.drop(live, r.Key)
			size := int32(r.Size()) // messages are bounded far below what an int32 holds
			live[r.Key] = size
			s.rows, s.bytes = s.rows+1, s.bytes+int(size)
		}
		for _, key := range t.Deletes {
			s.drop(live, key)
		}
		switch {
		case l.Rows > 0 && s.rows > l.Rows:
			return carrier.Crossed("rows", "it published more than %d rows (limits.rows)", l.Rows)
		case l.Bytes > 0 && s.bytes > l.Bytes:
			return carrier.Crossed("bytes", "it published more than %d bytes of rows (limits.bytes)", l.Bytes)
		}
	}
	return nil
}

func (s *sizes) drop(live map[string]int32, key string) {
	if size, ok := live[key]; ok {
		s.rows, s.bytes = s.rows-1, s.bytes-int(size)
		delete(live, key)
	}
}

// WellFormed says what is wrong with rows by themselves.
func WellFormed(t *pb.TableRows, l Limits) error {
	for _, r := range t.Upserts {
		size := r.Size()
		switch {
		case r.Key == "":
			return fmt.Errorf("it published a row of table %q without a key", t.Table)
		case size > outbox.MaxRow:
			return fmt.Errorf("it published row %q of table %q with %d bytes; the limit is %d", r.Key, t.Table, size, outbox.MaxRow)
		case l.RowBytes > 0 && size > l.RowBytes:
			return carrier.Crossed("rowBytes",
				"it published row %q of table %q with %d bytes, more than it may (limits.rowBytes, %d)", r.Key,
				t.Table, size, l.RowBytes)
		}
	}
	return nil
}
