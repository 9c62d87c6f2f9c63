package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	yamlv3 "go.yaml.in/yaml/v3"
)

// Salvaged returns, of settings that Load refuses, those that say which files and folders there
// are, as far as they can be read. The rest are the defaults.
func Salvaged(fs *pflag.FlagSet, environ []string) Settings {
	s := Defaults()
	s.Plugins, s.ConfigDir, s.History.StateDir = said(fs, environ, "plugins"), said(fs, environ, "configDir"), said(fs, environ, "stateDir")
	return s
}

// Unknown returns the variables with our prefix that are no setting.
func Unknown(environ []string) []string {
	_, unknown := environment(adopted(environ))
	return unknown
}

// Said names the settings that flags, an environment and the file that they name have, whatever
// they say.
func Said(fs *pflag.FlagSet, environ []string) (names []string) {
	for _, name := range Names() {
		_, ok := lookedUp(fs, environ, name)
		if ok {
			names = append(names, name)
		}
	}
	return names
}

func said(fs *pflag.FlagSet, environ []string, name string) string {
	value, _ := lookedUp(fs, environ, name)
	return value
}

// lookedUp returns a setting's text; ok: somebody says it.
func lookedUp(fs *pflag.FlagSet, environ []string, name string) (value string, ok bool) {
	if f := fs.Lookup(name); f != nil && f.Changed {
		return f.Value.String(), true
	}
	environ = adopted(environ)
	if slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, Variable(name)+"=") }) {
		return lookup(environ, Variable(name)), true
	}
	file, _ := fs.GetString(SettingsFlag)
	if file == "" {
		file = lookup(environ, Variable(SettingsFlag))
	}
	if file == "" {
		return "", false
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	var all map[string]yamlv3.Node
	if yamlv3.Unmarshal(text, &all) != nil {
		return "", false
	}
	node, ok := all[name]
	value = node.Value
	if value != "" && slices.Contains(paths, name) && !filepath.IsAbs(value) {
		value = filepath.Join(filepath.Dir(file), value)
	}
	return value, ok
}
