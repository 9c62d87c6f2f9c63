package host

import (
	"errors"
	"fmt"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"maps"
	"os"
	"slices"
	"strings"
)

// Builtin is what is known of a built-in plugin without running it.
type Builtin struct {
	// Schema is the JSON Schema of its config.
	Schema []byte
	// Check returns why it would refuse a config (JSON, nil for none).
	Check func(config []byte) error
}

// Validation says what to validate with.
type Validation struct {
	// Builtins are those that there are, by KIND/NAME.
	Builtins map[string]Builtin
	// Environ is that of the core, where secrets and the way to programs may stand.
	Environ []string
	// Hint returns `, did you mean "x"?`, or nothing, for a word and those that there are.
	Hint func(word string, all []string) string
}

// Validate returns what would keep the set's plugins from starting, as far as it shows without
// running any: programs and modules that are missing or not what is pinned, secrets that can't be
// read, built-ins that don't exist or refuse their config.
func Validate(set *manifest.Set, with Validation) []manifest.Mistake {
	ln := &launcher{set: set, variables: with.Environ, exe: "coxswain", runtimeDir: os.TempDir()}
	var found []manifest.Mistake
	for _, e := range set.Plugins {
		if m := ln.validate(e, with); m != nil {
			found = append(found, *m)
		}
	}
	return found
}

func (ln *launcher) validate(e *manifest.Entry, with Validation) *manifest.Mistake {
	wrong := func(at manifest.Place, err error) *manifest.Mistake {
		return &manifest.Mistake{Place: at, Text: fmt.Sprintf("plugin %s: %v", e.Name, err)}
	}
	carrier := e.Keys[e.Carrier()]
	e, open := e.Sample()
	if e.Builtin != "" {
		b, ok := with.Builtins[e.Builtin]
		if !ok {
			names := slices.Sorted(maps.Keys(with.Builtins))
			return wrong(carrier,
				fmt.Errorf("there is no built-in plugin %s%s; there are %s", e.Builtin, with.Hint(e.Builtin, names), strings.Join(names, ", ")))
		}
		if err := ln.checkConfig(e, b); err != nil && !openAt(err, open) {
			return wrong(faultPlace(e, err))
		}
		return nil
	}
	if err := ln.runnable(e); err != nil {
		return wrong(carrier, err)
	}
	if _, err := ln.fill(e); err != nil {
		return wrong(faultPlace(e, err))
	}
	return nil
}

// runnable reports, as an error, why what an entry runs could not be started, as far as it shows.
func (ln *launcher) runnable(e *manifest.Entry) error {
	if e.Plugin != "" {
		return checkSource(ln.set, e)
	}
	_, release, err := ln.launch(e)
	if err == nil {
		release()
	}
	return err
}

// openAt reports whether what is refused depends on a row.
func openAt(err error, open func(field string) bool) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && open(refused.Field)
}

// checkConfig reports, as an error, why a built-in would not take its config.
func (ln *launcher) checkConfig(e *manifest.Entry, b Builtin) error {
	with, err := ln.fill(e)
	if err != nil {
		return err
	}
	if err := b.Check(with.config); err != nil {
		return err
	}
	return conforms(e, with, b.Schema)
}

// faultPlace returns where a field that is refused stands, and the reason without the place.
func faultPlace(e *manifest.Entry, err error) (manifest.Place, error) {
	var refused *RefusedError
	if !errors.As(err, &refused) {
		return configPlace(e, ""), err
	}
	at := refused.At
	if at.Line == 0 {
		at = configPlace(e, refused.Field)
	}
	if refused.Field == "" {
		return at, errors.New("config: " + refused.Reason)
	}
	return at, fmt.Errorf("config.%s: %s", refused.Field, refused.Reason)
}

// configPlace is where a field of the config stands, or else the config, or the entry.
func configPlace(e *manifest.Entry, field string) manifest.Place {
	for _, at := range []manifest.Place{e.PlaceOf(field), e.Keys["config"]} {
		if at.Line > 0 {
			return at
		}
	}
	return e.At
}
