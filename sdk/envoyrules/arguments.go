package envoyrules

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// headerArgument is the name of a header as Envoy reads it in arguments: a token (RFC 9110 5.6.2),
// which a colon may begin; or nothing.
var headerArgument = regexp.MustCompile("^(:?[-!#$%&'*+.^_`|~0-9a-zA-Z]+)?$")

func anything(string) error { return nil }

// headers is HEADER or HEADER?OTHER.
func headers(s string) error {
	for i, name := range strings.Split(s, "?") {
		switch {
		case i > 1:
			return errors.New("more than one alternative header")
		case !headerArgument.MatchString(name):
			return fmt.Errorf("%q is no name of a header", tail(name))
		}
	}
	return nil
}

// words are parts of an argument, divided by colons, each one of a list.
func words(lists ...[]string) func(string) error {
	return func(s string) error {
		parts := strings.Split(s, ":")
		if len(parts) > len(lists) {
			return fmt.Errorf("too many arguments: %q", tail(s))
		}
		for i, p := range parts {
			if !slices.Contains(lists[i], p) {
				return fmt.Errorf("%q is none of %q", tail(p), lists[i])
			}
		}
		return nil
	}
}

// servedName is a source of the requested name, and which host header counts.
func servedName(s string) error {
	parts := strings.Split(s, ":")
	return words([]string{"", "SNI_ONLY", "SNI_FIRST", "HOST_FIRST"}, []string{"", "ORIG", "HOST"})(strings.Join(parts[:min(2, len(parts))], ":"))
}

// interval is FROM:TO, and the unit.
func interval(s string) error {
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 || len(parts) == 3 && !slices.Contains([]string{"ms", "us", "ns"}, parts[2]) {
		return fmt.Errorf("%q is not of the form FROM:TO or FROM:TO:ms", tail(s))
	}
	return nil
}

// filterState is KEY, or KEY with how it is written.
func filterState(s string) error {
	parts := strings.Split(s, ":")
	key, form := parts[0], ""
	if len(parts) > 1 {
		form = parts[1]
	}
	right := len(parts) == 3 && form == "FIELD" && parts[2] != "" ||
		len(parts) <= 2 && slices.Contains([]string{"", "PLAIN", "TYPED"}, form)
	if key == "" || !right {
		return fmt.Errorf("%q is not of the form KEY, KEY:PLAIN, KEY:TYPED or KEY:FIELD:NAME", tail(s))
	}
	return nil
}

// perRequest is a key of the filter state.
func perRequest(s string) error {
	if strings.Contains(s, ":") {
		return fmt.Errorf("%q is no key", tail(s))
	}
	return nil
}

// metadata is TYPE:NAMESPACE:KEY….
func metadata(s string) error {
	kind, _, _ := strings.Cut(s, ":")
	return words([]string{"DYNAMIC", "CLUSTER", "ROUTE", "UPSTREAM_HOST", "LISTENER", "LISTENER_FILTER_CHAIN", "VIRTUAL_HOST"})(kind)
}

// coalesce is a list of operators as JSON, of which the first that says something counts: names, or
// objects with command, param and max_length.
func (t table) coalesce(s string) error {
	var in map[string]json.RawMessage
	var list []json.RawMessage
	err := json.Unmarshal([]byte(s), &in)
	if err == nil {
		err = json.Unmarshal(in["operators"], &list)
	}
	if err != nil {
		return fmt.Errorf("no JSON with a list of operators: %w", err)
	}
	if len(list) == 0 {
		return errors.New("no operators")
	}
	for _, each := range list {
		if err := t.choice(each); err != nil {
			return err
		}
	}
	return nil
}

// choice is one of the operators of a list.
func (t table) choice(text json.RawMessage) error {
	var name, argument string
	var length bool
	if json.Unmarshal(text, &name) != nil {
		var in map[string]any
		if err := json.Unmarshal(text, &in); err != nil {
			return fmt.Errorf("an operator is neither a name nor an object: %w", err)
		}
		right := true
		name, right = in["command"].(string)
		if param, given := in["param"]; given && right {
			argument, right = param.(string)
		}
		if most, given := in["max_length"]; given && right {
			n, number := most.(float64)
			length, right = true, number && n >= 0
		}
		if !right {
			return errors.New("an operator has other fields than command, param and max_length should be")
		}
	}
	if name == "COALESCE" {
		return errors.New("one within another")
	}
	return t.operator(name, argument, length)
}
