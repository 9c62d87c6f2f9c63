package migrate

import (
	"path"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// arguments are the command line, which wins over variables: what follows the program's name, or
// where that is not there, the word discovery. A container without a command runs istiod's image,
// which starts it.
func (m *maker) arguments() {
	c := discovery(m.of)
	words := slices.Concat(c.Command, c.Args)
	if len(c.Command) > 0 {
		at := slices.IndexFunc(words, isProgram)
		if at < 0 {
			at = slices.Index(words, "discovery")
		}
		if at != 0 {
			what := "what it tells istiod is not read: write that into settings.yaml"
			if at > 0 {
				what = "what it does is not known: see whether it is wanted here"
			}
			m.out("command", Differs, "%s starts istiod, and %s", short(c.Command[0]), what)
		}
		if at < 0 {
			return
		}
		words = words[at:]
		if isProgram(words[0]) {
			words = words[1:]
		}
	}
	for len(words) > 0 {
		words = m.next(words)
	}
}

// isProgram reports whether a word is istiod's program: not a shell's text, which has spaces.
func isProgram(word string) bool {
	return path.Base(word) == program && !strings.ContainsAny(word, " \t\n")
}

// next takes a flag, with its value, or a word that is none, and returns the words after it.
// Source: pflag, "Command line flag syntax".
func (m *maker) next(words []string) []string {
	word, rest := words[0], words[1:]
	if word == "--" { // all that follows is no flag
		for _, w := range rest {
			m.out("argument "+short(w), Differs, "it is no flag; leave it out")
		}
		return nil
	}
	if !strings.HasPrefix(word, "-") || word == "-" {
		if word != "discovery" {
			m.out("argument "+short(word), Differs, "it is no flag; leave it out")
		}
		return rest
	}
	name, long := strings.CutPrefix(word, "--")
	name, value, has := strings.Cut(strings.TrimPrefix(name, "-"), "=")
	var f *pflag.Flag
	switch {
	case long:
		f = m.flags.Lookup(name)
	case name != "":
		f = m.flags.ShorthandLookup(name[:1])
	}
	what := "-" + name
	if long {
		what = "--" + name
	}
	if !long && f != nil {
		if joined := strings.TrimPrefix(word, "-"+f.Shorthand); joined != "" {
			value, has = strings.TrimPrefix(joined, "="), true
		}
		what = "-" + f.Shorthand + " (--" + f.Name + ")"
	}
	switch {
	case has:
	case f != nil && f.NoOptDefVal != "":
		value = f.NoOptDefVal
	case len(rest) > 0 && (f != nil || !strings.HasPrefix(rest[0], "-")):
		value, rest = rest[0], rest[1:]
	}
	m.argument(what, f, value)
	return rest
}
