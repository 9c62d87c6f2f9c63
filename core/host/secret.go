package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/mask"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxSecret is how large a secret's file may be.
const maxSecret = 1 << 20

// filled is a config with its secrets, and the fields that they are in.
type filled struct {
	config  []byte
	secrets map[string]bool
	// values are secret: those that were put in, and those that stand in plugins.yaml under a name
	// that says so.
	values []string
}

// fill puts secrets into an entry's config: below the config itself, {file: PATH} stands for what
// the file holds, without the newline at its end, and {env: NAME} for a variable of the core's
// environment.
func (ln *launcher) fill(e *manifest.Entry) (*filled, error) {
	f := &filled{config: e.Config, secrets: map[string]bool{}}
	f.values = ln.environment(e, mask.Telling)
	defer func() { ln.known.Set(e.Name, f.values) }()
	if len(e.Config) == 0 {
		return f, nil
	}
	d := json.NewDecoder(bytes.NewReader(e.Config))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	value, err := ln.secrets(e, value, "", f)
	if err != nil || len(f.secrets) == 0 {
		return f, err
	}
	f.config, err = json.Marshal(value)
	return f, err
}

func (ln *launcher) secrets(e *manifest.Entry, value any, path string, f *filled) (any, error) {
	var err error
	switch v := value.(type) {
	case []any:
		for i := range v {
			if v[i], err = ln.secrets(e, v[i], path+"["+strconv.Itoa(i)+"]", f); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if path != "" && len(v) == 1 {
			for word, from := range v {
				if name, ok := from.(string); ok && (word == "file" || word == "env") {
					f.secrets[path] = true
					text, err := ln.secret(e, path, word, name)
					f.values = append(f.values, text)
					return text, err
				}
			}
		}
		for key := range v {
			if text, ok := v[key].(string); ok && mask.Telling(key) {
				f.values = append(f.values, text)
			}
			if v[key], err = ln.secrets(e, v[key], strings.TrimPrefix(path+"."+key, "."), f); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// environment returns what stands in variables of a plugin's environment that are declared for it,
// of those names that accept takes.
func (ln *launcher) environment(e *manifest.Entry, accept func(name string) bool) (values []string) {
	if e.Process != nil {
		for name, value := range e.Process.Env {
			if accept(name) {
				values = append(values, value)
			}
		}
	}
	if a := e.Allowed(); a != nil {
		for _, name := range a.Env {
			if accept(name) {
				values = append(values, ln.environ(name))
			}
		}
	}
	slices.Sort(values)
	return values
}

// secret reads one. Errors name the place, never the secret.
func (ln *launcher) secret(e *manifest.Entry, path, word, name string) (string, error) {
	wrong := func(format string, args ...any) (string, error) {
		return "", &RefusedError{Field: path, Reason: fmt.Sprintf(format, args...), At: e.PlaceOf(path)}
	}
	if word == "env" {
		for _, pair := range ln.variables {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, nil
			}
		}
		return wrong("the core's environment has no %s", name)
	}
	f, err := os.Open(manifest.Under(ln.set.Dir(), name))
	if err != nil {
		return wrong("%v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return wrong("%v", err)
	case len(text) > maxSecret:
		return wrong("%s is larger than 1 MiB", name)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}
