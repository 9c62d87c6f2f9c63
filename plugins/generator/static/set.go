package static

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/tree"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// set is what was read from files so far: of each its last good content.
type set struct {
	// offered are the types that may be served.
	offered map[string]bool
	files   map[string]*file
	// unread is what could not be looked at, and why, as it was said last.
	unread map[string]string
}

type file struct {
	// info and sum are those of the content that was read at a time.
	info fs.FileInfo
	sum  [sha256.Size]byte
	read time.Time
	// rows are those of the last good content.
	rows map[string]*sdk.Row
}

// edit is what changes in the table, and what went wrong.
type edit struct {
	upserts []*sdk.Row
	deletes []string
	faults  []error
}

// refresh reads the files that changed. One that can't be read, or holds a mistake, keeps its rows.
func (s *set) refresh(found *tree.Found) (e edit) {
	for _, path := range slices.Sorted(maps.Keys(s.files)) {
		if found.Missing(path) {
			e.replace(s.files[path].rows, nil)
			delete(s.files, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found.Files)) {
		e.add(s.update(path, found.Files[path]))
	}
	e.faults = append(e.faults, s.blind(found)...)
	return e
}

// blind returns, once, why something can't be looked at.
func (s *set) blind(found *tree.Found) (faults []error) {
	now := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(found.Unread)) {
		if now[path] = found.Unread[path].Error(); s.unread[path] != now[path] {
			faults = append(faults, fmt.Errorf("%s: %w", path, found.Unread[path]))
		}
	}
	s.unread = now
	return faults
}

// update reads a file if it changed.
func (s *set) update(path string, info fs.FileInfo) (e edit) {
	f := s.files[path]
	if f == nil {
		f = &file{}
		s.files[path] = f
	}
	now := time.Now()
	if unchanged(f.info, info, f.read) {
		return e
	}
	content, err := os.ReadFile(path)
	if err != nil {
		e.faults = append(e.faults, err)
		return e
	}
	again := f.info != nil && f.sum == sha256.Sum256(content)
	f.info, f.sum, f.read = info, sha256.Sum256(content), now
	if again {
		return e
	}
	rows, err := s.rows(path, content)
	if err != nil {
		e.faults = append(e.faults, err)
		return e
	}
	e.replace(f.rows, rows)
	f.rows = rows
	return e
}

// rows are those of a file's content.
func (s *set) rows(path string, content []byte) (map[string]*sdk.Row, error) {
	resources, err := read(path, content)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]*sdk.Row, len(resources))
	for _, r := range resources {
		if !s.offered[r.typeURL] {
			return nil, fmt.Errorf("%s:%d:%d: %s was not offered when the plugin started, because no file held that type; restart it",
				path, r.line, r.column, r.typeURL)
		}
		row := r.row()
		rows[row.Key] = row
	}
	return rows, nil
}

func (e *edit) add(more edit) {
	e.upserts = append(e.upserts, more.upserts...)
	e.deletes = append(e.deletes, more.deletes...)
	e.faults = append(e.faults, more.faults...)
}

// replace takes a file from old rows to new ones.
func (e *edit) replace(old, now map[string]*sdk.Row) {
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if was := old[key]; was == nil || string(was.Payload) != string(now[key].Payload) {
			e.upserts = append(e.upserts, now[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if now[key] == nil {
			e.deletes = append(e.deletes, key)
		}
	}
}

// clash is a resource that two files have.
type clash struct{ typeURL, name, first, second string }

// clashes returns all of them, in order of the files.
func (s *set) clashes() (out []clash) {
	first := map[[2]string]string{}
	for _, path := range slices.Sorted(maps.Keys(s.files)) {
		for _, key := range slices.Sorted(maps.Keys(s.files[path].rows)) {
			labels := s.files[path].rows[key].Labels
			id := [2]string{labels[typeLabel], labels[nameLabel]}
			if was, there := first[id]; there {
				out = append(out, clash{id[0], id[1], was, path})
			} else {
				first[id] = path
			}
		}
	}
	return out
}

// types returns the types that files hold, sorted. Files with mistakes don't count.
func types(files map[string]fs.FileInfo) []string {
	found := map[string]bool{}
	for path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		resources, _ := read(path, content)
		for _, r := range resources {
			found[r.typeURL] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
