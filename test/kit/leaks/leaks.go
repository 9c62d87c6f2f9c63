// Package leaks finds secrets that tests have planted where they should not be.
package leaks

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
)

// Marks are the forms in which a secret may stand somewhere.
type Marks map[string][]byte

// Of adds those of a text: a line of it, and it in base64, as rows and Secrets have it.
func (m Marks) Of(name string, text []byte) {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	m[name] = lines[len(lines)/2]
	encoded := base64.StdEncoding.EncodeToString(text) // keys of one sort begin alike
	m[name+" in base64"] = []byte(encoded[len(encoded)/2-30 : len(encoded)/2+30])
}

// In returns the marks that a text has.
func (m Marks) In(text []byte) (found []string) {
	for name, mark := range m {
		if bytes.Contains(text, mark) {
			found = append(found, name)
		}
	}
	return found
}

// Memory returns the marks that are in a process's memory.
func Memory(pid int, m Marks) (found []string, err error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer func() { _ = maps.Close() }()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer func() { _ = mem.Close() }()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var mode string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); err != nil || !strings.HasPrefix(mode, "rw") {
			continue
		}
		text, _ := io.ReadAll(io.NewSectionReader(mem, from, to-from)) // pages that aren't there end it
		for _, what := range m.In(text) {
			if !seen[what] {
				seen[what], found = true, append(found, what)
			}
		}
	}
	return found, nil
}
