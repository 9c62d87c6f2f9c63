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
)

// chooser is the package that switched files ask which mutant is on. Its letter has room for what is written into built programs.
//
//go:embed chooser.txt
var chooser []byte

const (
	// letter begins what is written into a program; it ends with as many bytes of padding as are left.
	letter     = "COXSWAIN-MUTANT:"
	letterSize = 512
	// chosen is how switched files call the chooser.
	chosen = "mutant__"
)

// switched is the product with many mutants, each of which waits behind a switch.
type switched struct {
	dir, overlay string
	mutants      []*mutant         // those that have a switch: number i+1 is mutants[i]
	names        map[string]string // of files, by what stands in their place
}

// switches puts as many mutants as it can behind switches. Those that don't build so become alone.
func switches(ctx context.Context, mutants []*mutant, packages []string) (*switched, error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	s := &switched{dir: dir, overlay: filepath.Join(dir, "overlay.json")}
	for {
		if err := s.write(mutants); err != nil {
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

// write makes the overlay.
func (s *switched) write(mutants []*mutant) error {
	module, err := modulePath()
	if err != nil {
		return err
	}
	s.mutants = nil
	of := map[string][]*mutant{}
	numbers := map[*mutant]int{}
	for _, m := range mutants {
		if m.form != alone {
			s.mutants = append(s.mutants, m)
			numbers[m] = len(s.mutants)
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
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if sum(source) != inside[0].Sum {
			return fmt.Errorf("%s has changed meanwhile: begin again", file)
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, source, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		after := int(tree.Name.End()) - 1
		slices.SortStableFunc(inside, func(a, b *mutant) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
		w := writer{source, numbers}
		text := string(source[:after]) + "; import " + chosen + " " + strconv.Quote(module+"/internal/mutant") + w.text(after, len(source), inside)
		if err := put(file, []byte(text)); err != nil {
			return err
		}
	}
	if err := put("internal/mutant/mutant.go", chooser); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(s.overlay, text, 0o600)
}

func modulePath() (string, error) {
	out, err := exec.Command("go", "list", "-m").Output()
	return strings.TrimSpace(string(out)), err
}

var complaint = regexp.MustCompile(`(?m)^(?:vet: )?([^\s:]+\.go):(\d+):\d+: `)

// blame makes those mutants alone that stand where the compiler complains, or in the same function; false if there is none.
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

// writer writes a file with switches.
type writer struct {
	source  []byte
	numbers map[*mutant]int
}

// text returns the source from one place to another with the switches of those mutants, outer ones first, that lie between them.
func (w *writer) text(from, to int, inside []*mutant) string {
	var out strings.Builder
	at := from
	for i, m := range inside {
		if m.from < at || m.to > to {
			continue
		}
		out.Write(w.source[at:m.from])
		out.WriteString(w.one(m, inside[i+1:]))
		at = m.to
	}
	out.Write(w.source[at:to])
	return out.String()
}

// one returns a mutant's node as a switch. What is on is one mutant at most: the changed form has no other switches.
func (w *writer) one(m *mutant, inside []*mutant) string {
	n := w.numbers[m]
	written := func() string { return w.text(m.from, m.to, inside) }
	switch m.form {
	case condition:
		changed := string(w.source[m.from:m.Start]) + m.Text + string(w.source[m.End:m.to])
		return fmt.Sprintf("(%s.Is(%d) && (%s) || !%s.Is(%d) && (%s%s))", chosen, n, changed, chosen, n, w.line(changed, m.from), written())
	case arithmetic:
		return fmt.Sprintf("%s.Compute(%d, %q, %q, %s, %s)", chosen, n, m.operator, m.becomes, w.text(m.from, m.opStart, inside), w.text(m.opEnd, m.to, inside))
	case number:
		return fmt.Sprintf("%s.Number[%s](%d, %s)", chosen, m.number, n, written())
	case statement:
		return fmt.Sprintf("if !%s.Is(%d) { %s }", chosen, n, written())
	case simple:
		return fmt.Sprintf("func() { if !%s.Is(%d) { %s } }()", chosen, n, written())
	}
	panic("a mutant without a switch")
}

// line tells the compiler where it is again after text that the file doesn't have.
func (w *writer) line(after string, offset int) string {
	if !strings.Contains(after, "\n") {
		return ""
	}
	before := w.source[:offset]
	return fmt.Sprintf("/*line :%d:%d*/", bytes.Count(before, []byte("\n"))+1, offset-bytes.LastIndexByte(before, '\n'))
}

// program is a built one with switches, and where in it the letter is.
type program struct {
	path  string
	bytes []byte
	at    []int
}

// open reads a program. One that has no switched package has no letter.
func openProgram(path string) (*program, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &program{path: path, bytes: b}
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(letter))
		if i < 0 {
			return p, nil
		}
		if at += i; at+letterSize <= len(b) && b[at+letterSize-1] == '#' {
			p.at = append(p.at, at)
		}
		at += len(letter)
	}
}

// with writes the program anew, with words in its letter: a mutant's number, and the file that takes the numbers of those that are reached.
func (p *program) with(path string, number int, reached string) error {
	words := fmt.Sprintf("%s%d:%s:", letter, number, reached)
	if len(words) > letterSize {
		return fmt.Errorf("%s is too long a name", reached)
	}
	b := slices.Clone(p.bytes)
	for _, at := range p.at {
		copy(b[at:], words)
	}
	return os.WriteFile(path, b, 0o700)
}
