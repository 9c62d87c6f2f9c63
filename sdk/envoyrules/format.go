package envoyrules

import (
	"fmt"
	"regexp"
	"strings"
)

// command is what follows a percent sign: an operator, an argument, a length.
// Source: Envoy, access logging, command operators.
var command = regexp.MustCompile(`^([A-Z0-9_]+)(?:(\()(.*?)\))?(:[0-9]+)?%`)

// Format says why Envoy would refuse a text in which %…% stands for something of the request, as
// in headers that are added and lines of access logs; nil: it wouldn't.
func Format(text string) error {
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "%")
		if !found {
			return nil
		}
		if strings.HasPrefix(after, "%") {
			rest = after[1:]
			continue
		}
		m := command.FindStringSubmatch(after)
		if m == nil {
			return fmt.Errorf("unterminated variable after %q", tail(before)+"%")
		}
		if err := known.operator(m[1], m[3], m[4] != ""); err != nil {
			return err
		}
		rest = after[len(m[0]):]
	}
}

// tail is what an error shows of a text.
func tail(s string) string { return s[max(0, len(s)-80):] }

// operator checks one with its argument, empty where there is none, and whether it has a length.
func (t table) operator(name, argument string, length bool) error {
	f, ok := t[name]
	if !ok {
		return fmt.Errorf("unknown command operator %q", tail(name))
	}
	switch {
	case length && !f.length:
		return fmt.Errorf("command operator %s takes no length", name)
	case argument == "" && f.needed:
		return fmt.Errorf("command operator %s needs an argument in parentheses", name)
	case argument != "" && f.argument == nil:
		return fmt.Errorf("command operator %s takes no argument", name)
	case argument == "":
		return nil
	}
	if err := f.argument(argument); err != nil {
		return fmt.Errorf("command operator %s: %w", name, err)
	}
	return nil
}
