package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	// commandLine is a command in a block of a document: `coxswain …` or `bin/coxswain …`, at its
	// beginning, or that of a part of a shell's construct.
	commandLine = regexp.MustCompile(`(?:^|[;|&(!]|<\(|\b(?:until|while|if|do|then) )\s*(?:bin/|\./)?coxswain ((?:[a-z][a-z-]*|-)[^|;&)#]*)`)
	// inlineCommand is one in a sentence.
	inlineCommand = regexp.MustCompile("`coxswain ([a-z][^`|;]*)[^`]*`")
)

// commandsIn returns the command lines of a document, without the program's name: those of blocks,
// fenced or indented, and those in sentences.
func commandsIn(text string) (all []string) {
	fenced, kind := false, ""
	text = strings.ReplaceAll(text, "\\\n", " ") // lines that go on
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			fenced, kind = !fenced, rest
			continue
		}
		switch {
		case fenced && (kind == "" || strings.HasPrefix(kind, "sh")), !fenced && strings.HasPrefix(line, "    "):
			if m := commandLine.FindStringSubmatch(line); m != nil {
				all = append(all, m[1])
			}
		case !fenced:
			for _, m := range inlineCommand.FindAllStringSubmatch(line, -1) {
				all = append(all, m[1])
			}
		}
	}
	return all
}

// TestCommandsIn: which words of a document are commands.
func TestCommandsIn(t *testing.T) {
	got := strings.Join(
		commandsIn("Use `coxswain hold list`, or `kubectl`.\n\n    coxswain config   # what\n    bin/coxswain plugins top | less\n    x of coxswain alone\n\n"+
			"```sh\nuntil coxswain config --addr a | grep x; do sleep 1; done\ncoxswain log \\\n  set "+
			"a=b\n```\n\n```yaml\ncoxswain: {no: one}\n```\n\n```\ncoxswain diff --from 1\n```\n"), "; ",
	)
	if want := "hold list; config   ; plugins top ; config --addr a ; log    set a=b; diff --from 1"; got != want {
		t.Errorf("%q", got)
	}
}

// TestCommandsOfDocuments: each command that a document shows is one, with flags that it has.
func TestCommandsOfDocuments(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{
		"../../*.md", "../../docs/guides/*.md", "../../docs/decisions/*.md", "../../plugins/*/*/README.md",
		"../../examples/*/README.md",
	} {
		found, err := filepath.Glob(more)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, "roadmap.md") {
			continue // it names what is to come
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandsIn(string(text)) {
			n++
			if why := noCommand(line); why != "" {
				t.Errorf("%s: coxswain %s: %s", filepath.ToSlash(strings.TrimPrefix(file, "../../")), line, why)
			}
		}
	}
	if n < 200 {
		t.Errorf("%d commands were found, which is too few to be all", n)
	}
}

// noCommand says why a line is no command; empty: it is one.
func noCommand(line string) string {
	words := strings.Fields(line)
	at, rest := rootCommand(&program{}, nil), words
	for len(rest) > 0 {
		next := subcommand(at, rest[0])
		if next == nil {
			break
		}
		at, rest = next, rest[1:]
	}
	if words[0] == "completion" { // the library adds it as a command runs
		return ""
	}
	if len(rest) == len(words) && !strings.HasPrefix(words[0], "-") {
		return "there is no such command"
	}
	if at.HasSubCommands() && !at.Runnable() && len(rest) > 0 && regexp.MustCompile(`^[a-z-]+$`).MatchString(rest[0]) && !strings.HasPrefix(rest[0], "-") {
		return "there is no command " + rest[0]
	}
	for _, word := range rest {
		word = strings.Trim(word, "[]…'\"")
		if word == "--" {
			break // the rest is somebody else's
		}
		name, long := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		switch {
		case long && name != "help" && at.Flags().Lookup(name) == nil && at.InheritedFlags().Lookup(name) == nil:
			return "it has no flag --" + name
		case !long && len(word) == 2 && word[0] == '-' && word != "-h" && at.Flags().ShorthandLookup(word[1:]) == nil:
			return "it has no flag " + word
		}
	}
	return ""
}

func subcommand(of *cobra.Command, name string) *cobra.Command {
	for _, c := range of.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}
