package injector

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
)

// Named is where an entry's templates and values come from: files, or a ConfigMap.
type Named struct {
	// ConfigFile and ValuesFile are paths; empty: there is none.
	ConfigFile, ValuesFile string
	// ConfigMap is a name; empty: files count.
	Namespace, ConfigMap string
	// Names are what templates may read.
	Names render.Names
}

// Place returns where the templates and values of an entry's config come from.
func Place(config []byte) (Named, error) {
	c, err := strict.Parse(config, defaults())
	switch {
	case err != nil:
		return Named{}, err
	case c.From == fromFiles:
		return Named{ConfigFile: c.ConfigFile, ValuesFile: c.ValuesFile, Names: c.allowed()}, nil
	}
	return Named{Namespace: c.Namespace, ConfigMap: c.name(), Names: c.allowed()}, nil
}
