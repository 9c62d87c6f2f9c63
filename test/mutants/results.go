package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// outcome is what became of a mutant. One whose tests don't end in time is killed.
type outcome string

const (
	killed   outcome = "killed"
	late     outcome = "late"
	survived outcome = "survived"
	unbuilt  outcome = "unbuilt"
)

type result struct {
	mutant
	Outcome outcome
	Seconds float64
}

func (m *mutant) id() string {
	return fmt.Sprintf("%s %s %d %d %q", m.File, m.Sum, m.Start, m.End, m.Text)
}

// results are those of this run and of those before it, in a file, a line each.
type results struct {
	file *os.File
	by   map[string]result
}

func open(path string) (*results, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	out := &results{f, map[string]result{}}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r result
		if json.Unmarshal(lines.Bytes(), &r) == nil { // otherwise it was cut off
			out.by[r.id()] = r
		}
	}
	return out, nil
}

func (r *results) of(m mutant) (result, bool) {
	have, ok := r.by[m.id()]
	return have, ok
}

func (r *results) add(one result) error {
	b, err := json.Marshal(one)
	if err != nil {
		return err
	}
	_, err = r.file.Write(append(b, '\n'))
	return err
}

func (r *results) close() { _ = r.file.Close() }
