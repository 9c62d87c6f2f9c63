package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
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
	// By is the test that noticed it, or the packages whose tests did.
	By      string
	Seconds float64
}

func (m *mutant) id() string {
	return fmt.Sprintf("%s %s %d %d %q", m.File, m.Sum, m.Start, m.End, m.Text)
}

// results are those of this run and of those before it, in a file, a line each.
type results struct {
	mu   sync.Mutex
	file *os.File
	by   map[string]result
}

// open reads results. With again it forgets what survived.
func open(path string, again bool) (*results, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	out := &results{file: f, by: map[string]result{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r result
		if json.Unmarshal(lines.Bytes(), &r) == nil { // otherwise it was cut off
			out.by[r.id()] = r
		}
	}
	for id, r := range out.by {
		if again && r.Outcome == survived {
			delete(out.by, id)
		}
	}
	return out, lines.Err()
}

func (r *results) of(m mutant) (result, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	have, ok := r.by[m.id()]
	return have, ok
}

// add keeps a result and prints it.
func (r *results) add(one result) error {
	b, err := json.Marshal(one)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[one.id()] = one
	fmt.Printf("%-9s %s:%d: %s (%.0fs) %s\n", one.Outcome, one.File, one.Line, one.What, one.Seconds, one.By)
	_, err = r.file.Write(append(b, '\n'))
	return err
}

func (r *results) close() { _ = r.file.Close() }
