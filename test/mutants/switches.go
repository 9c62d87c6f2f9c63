package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// chooser is the package that switched files ask which mutant is on. It has a slot for what is
// written into built programs.
//
//go:embed chooser.txt
var chooser []byte

const (
	// slot begins the bytes of a program that are written over, and padding fills the rest of them.
	slot     = "COXSWAIN-MUTANT:"
	slotSize = 512
	padding  = '#'
	// chosen is how switched files call the chooser.
	chosen = "mutant__"
)

// switched is the product with many mutants, each of which waits behind a switch.
type switched struct {
	dir, overlay string
	mutants      []*mutant         // those that have a switch
	names        map[string]string // of files, by what stands in their place
}

// switches puts as many mutants as it can behind switches. Those that don't build so become alone.
func switches(ctx context.Context, mutants []*mutant, packages []string) (*switched, error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	s := &switched{dir: dir, overlay: filepath.Join(dir, "overlay.json")}
	module, err := exec.CommandContext(ctx, "go", "list", "-m").Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("go list -m: %w", err), s.remove())
	}
	for {
		if err := s.write(mutants, strings.TrimSpace(string(module))); err != nil {
			return nil, errors.Join(err, s.remove())
		}
		cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-gcflags=-e", "-overlay", s.overlay}, packages...)...)
		out, err := cmd.CombinedOutput()
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil || !s.blame(out) {
			return nil, errors.Join(fmt.Errorf("go build: %w\n%s", err, out), s.remove())
		}
	}
}

func (s *switched) remove() error { return os.RemoveAll(s.dir) }

// write makes the overlay of a module.
func (s *switched) write(mutants []*mutant, module string) error {
	s.mutants = nil
	of := map[string][]*mutant{}
	for _, m := range mutants {
		if m.number = 0; m.form != alone {
			s.mutants = append(s.mutants, m)
			m.number = len(s.mutants)
			of[m.File] = append(of[m.File], m)
		}
	}
	replace := map[string]string{}
	s.names = map[string]string{}
	put := func(name string, text []byte) error {
		at, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		replace[at] = filepath.Join(s.dir, fmt.Sprintf("%d.go", len(replace)))
		s.names[replace[at]] = name
		return os.WriteFile(replace[at], text, 0o600)
	}
	for file, inside := range of {
		source, err := inside[0].read()
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, source, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		after := int(tree.Name.End()) - 1
		slices.SortStableFunc(inside, func(a, b *mutant) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
		})
		clause := fmt.Sprintf("%s; import %s %q", source[:after], chosen, module+"/internal/mutant")
		text := clause + writer(source).text(after, len(source), inside)
		if err := put(file, []byte(text)); err != nil {
			return err
		}
	}
	if err := put("internal/mutant/mutant.go", chooser); err != nil {
		return err
	}
	return writeOverlay(s.overlay, replace)
}

// writeOverlay writes what `go -overlay` takes: files, and those that stand in their place.
func writeOverlay(path string, replace map[string]string) error {
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

var complaint = regexp.MustCompile(`(?m)^([^\s:]+\.go):(\d+):\d+: `)

// blame makes those mutants alone that stand where the compiler complains, or not far before; it
// reports whether there are any.
func (s *switched) blame(out []byte) bool {
	found := false
	for _, at := range complaint.FindAllSubmatch(out, -1) {
		file := s.names[string(at[1])]
		line, _ := strconv.Atoi(string(at[2]))
		near := s.at(file, line, line)
		if len(near) == 0 {
			near = s.at(file, line-200, line)
		}
		for _, m := range near {
			m.form, found = alone, true
		}
	}
	return found
}

// at returns the mutants with a switch whose node begins in lines of a file.
func (s *switched) at(file string, from, to int) []*mutant {
	var out []*mutant
	for _, m := range s.mutants {
		if m.form != alone && m.File == file && m.Line >= from && m.Line <= to {
			out = append(out, m)
		}
	}
	return out
}

// writer is the source of a file, and writes it with switches.
type writer []byte

// text returns the source from one place to another with the switches of those mutants, outer ones
// first, that lie between.
func (w writer) text(from, to int, inside []*mutant) string {
	var out strings.Builder
	at := from
	for i, m := range inside {
		if m.from < at || m.to > to {
			continue
		}
		out.Write(w[at:m.from])
		out.WriteString(w.one(m, inside[i+1:]))
		at = m.to
	}
	out.Write(w[at:to])
	return out.String()
}

// one returns a mutant's node as a switch. What is on is one mutant at most: the changed form has
// no other switches.
func (w writer) one(m *mutant, inside []*mutant) string {
	is := fmt.Sprintf("%s.Is(%d)", chosen, m.number)
	written := func() string { return w.text(m.from, m.to, inside) }
	switch m.form {
	case condition:
		changed := string(w[m.from:m.Start]) + m.Text + string(w[m.End:m.to])
		return fmt.Sprintf("(%s && (%s) || !%s && (%s%s))", is, changed, is, w.line(changed, m.from), written())
	case arithmetic:
		left, right := w.text(m.from, m.Start, inside), w.text(m.End, m.to, inside)
		return fmt.Sprintf("%s.Compute(%d, %q, %q, %s, %s)", chosen, m.number, w[m.Start:m.End], m.Text, left, right)
	case number:
		return fmt.Sprintf("%s.Number[%s](%d, %s)", chosen, m.typ, m.number, written())
	case statement:
		return fmt.Sprintf("if !%s { %s }", is, written())
	case simple:
		return fmt.Sprintf("func() { if !%s { %s } }()", is, written())
	}
	panic("a mutant without a switch")
}

// line tells the compiler where it is again after text that the file doesn't have.
func (w writer) line(after string, offset int) string {
	if !strings.Contains(after, "\n") {
		return ""
	}
	before := w[:offset]
	return fmt.Sprintf("/*line :%d:%d*/", bytes.Count(before, []byte("\n"))+1, offset-bytes.LastIndexByte(before, '\n'))
}

// program is a built one with switches, and where in it the slot is.
type program struct {
	path  string
	bytes []byte
	at    []int
}

// openProgram reads a program. One without switched packages has no slot.
func openProgram(path string) (*program, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &program{path: path, bytes: b}
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(slot))
		if i < 0 {
			return p, nil
		}
		if at += i; at+slotSize <= len(b) && b[at+slotSize-1] == padding {
			p.at = append(p.at, at)
		}
		at += len(slot)
	}
}

// with writes the program anew, with a mutant's number in its slot, and the file that takes the
// numbers of those that are reached.
func (p *program) with(path string, number int, reached string) error {
	words := fmt.Sprintf("%s%d:%s:", slot, number, reached)
	if len(words) > slotSize {
		return fmt.Errorf("%s is too long a name", reached)
	}
	b := slices.Clone(p.bytes)
	for _, at := range p.at {
		copy(b[at:], words)
	}
	syscall.ForkLock.RLock() // a process that is started meanwhile would have the file open, and nobody could execute it
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, b, 0o700)
}
