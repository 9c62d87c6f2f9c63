package settings

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	yamlv3 "go.yaml.in/yaml/v3"
)

// places say where each setting that was given comes from: FILE:LINE:COLUMN, $VARIABLE or --FLAG.
// What wins is put in last.
type places map[string]string

// wants say, by a flag's type, what its value must be.
var wants = map[string]string{
	"duration": "a time with a unit, such as 100ms, 10s or 30m",
	"bool":     "true or false",
	"int":      "a whole number",
	"int64":    "a whole number",
	"uint32":   "a whole number that isn't negative",
	"float64":  "a number",
}

// check returns what is wrong with a value of a setting, by the type of its flag, and with its
// place.
func (p places) check(flags *pflag.FlagSet, name, text string) error {
	f := flags.Lookup(name)
	if err := f.Value.Set(text); err != nil {
		return fmt.Errorf("%s: %s: %q is not %s", p[name], name, text, wants[f.Value.Type()])
	}
	return nil
}

// scratch returns flags to try values on.
func scratch() *pflag.FlagSet {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(fs, Defaults())
	return fs
}

// scalars notes where a file's settings stand, and checks their values.
func (p places) scalars(path string, m *yamlv3.Node) error {
	flags, errs := scratch(), []error{}
	for i := 0; i < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		p[key.Value] = fmt.Sprintf("%s:%d:%d", path, value.Line, value.Column)
		switch {
		case value.Kind == yamlv3.AliasNode:
			errs = append(errs, p.check(flags, key.Value, value.Alias.Value))
		case value.Kind != yamlv3.ScalarNode:
			errs = append(errs, fmt.Errorf("%s: %s: want one value, not a list or a mapping", p[key.Value], key.Value))
		default:
			errs = append(errs, p.check(flags, key.Value, value.Value))
		}
	}
	return errors.Join(errs...)
}

// variables notes which settings the environment has, and checks their values.
func (p places) variables(given map[string]any) error {
	flags, errs := scratch(), []error{}
	for _, name := range Names() {
		if v, ok := given[name]; ok {
			p[name] = "$" + Variable(name)
			errs = append(errs, p.check(flags, name, fmt.Sprint(v)))
		}
	}
	return errors.Join(errs...)
}

// flags notes which settings the command line has; pflag has checked their values.
func (p places) flags(fs *pflag.FlagSet) {
	fs.Visit(func(f *pflag.Flag) { p[f.Name] = "--" + f.Name })
}

// locate puts places before the errors that begin with a setting's name.
func (p places) locate(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return p.locateOne(err)
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, p.locate(e))
	}
	return errors.Join(all...)
}

func (p places) locateOne(err error) error {
	if err == nil {
		return nil
	}
	name, _, _ := strings.Cut(err.Error(), ":")
	place := p[name]
	if place == "" || place == "--"+name {
		return err
	}
	return fmt.Errorf("%s: %w", place, err)
}
