// Package levels has the levels of a log, by area, which may change while it is written. An area is
// a part of the core, core/NAME, or a plugin, plugin/NAME.
package levels

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Attr of a logger says which part of the core it is of; a handler of Naming alone writes it.
const Attr = "area"

// pluginAttr of a logger, or of a line, says which plugin it is about.
const pluginAttr = "plugin"

// Default is the name of the level of areas that have none of their own, and says of an area that
// it has none.
const Default = "default"

// words are the levels by name.
var words = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Levels of a log. Any goroutine may use it.
type Levels struct {
	base *slog.LevelVar
	mu   sync.Mutex // of those who write
	// own are those that were set, by area.
	own atomic.Pointer[map[string]slog.Level]
	// parts are the areas of the core that write.
	parts map[string]bool
}

// New returns levels that are all base.
func New(base *slog.LevelVar) *Levels {
	l := &Levels{base: base, parts: map[string]bool{}}
	l.own.Store(&map[string]slog.Level{})
	return l
}

// Of returns the levels of a log that a handler of theirs writes; nil: there are none.
func Of(log *slog.Logger) *Levels {
	if h, ok := log.Handler().(handler); ok {
		return h.levels
	}
	return nil
}

// Area is one, and its level.
type Area struct {
	Area  string `json:"area"`
	Level string `json:"level"`
	// Own: it was set for it.
	Own bool `json:"own,omitempty"`
}

// List returns the default, the areas of the core and those of plugins, in order of names.
func (l *Levels) List(plugins []string) []Area {
	own := *l.own.Load()
	all := []Area{{Area: Default, Level: word(l.base.Level())}}
	for _, name := range l.areas(plugins) {
		level, set := own[name]
		if !set {
			level = l.base.Level()
		}
		all = append(all, Area{name, word(level), set})
	}
	return all
}

// areas are the names of the core's areas and of plugins'.
func (l *Levels) areas(plugins []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := slices.Sorted(maps.Keys(l.parts))
	for _, p := range slices.Sorted(slices.Values(plugins)) {
		names = append(names, "plugin/"+p)
	}
	return names
}

// Set gives an area a level: debug, info, warn, error or, so that it has none of its own, default.
// Plugins are those that there are. The error says which areas or levels there are.
func (l *Levels) Set(area, level string, plugins []string) error {
	to, known := words[strings.ToLower(level)]
	reset := level == Default && area != Default
	if !known && !reset {
		return fmt.Errorf("%q is no level: debug, info, warn and error are, and default for an area that is to have none of its own", level)
	}
	names := l.areas(plugins)
	if area != Default && !slices.Contains(names, area) {
		return fmt.Errorf("there is no area %q; there are %s, %s", area, Default, strings.Join(names, ", "))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if area == Default {
		l.base.Set(to)
		return nil
	}
	own := maps.Clone(*l.own.Load())
	if delete(own, area); !reset {
		own[area] = to
	}
	l.own.Store(&own)
	return nil
}

// of is the level of lines of a part of the core about a plugin; either may be empty.
func (l *Levels) of(part, plugin string) slog.Level {
	own := *l.own.Load()
	if len(own) > 0 {
		if level, ok := own["plugin/"+plugin]; ok {
			return level
		}
		if level, ok := own[part]; ok {
			return level
		}
	}
	return l.base.Level()
}

// least is the lowest level of lines of a part, whatever plugin they are about.
func (l *Levels) least(part string) slog.Level {
	least := l.of(part, "")
	for area, level := range *l.own.Load() {
		if strings.HasPrefix(area, "plugin/") {
			least = min(least, level)
		}
	}
	return least
}

// Handler returns one that passes lines on that are of their area's level, or above.
func (l *Levels) Handler(to slog.Handler) slog.Handler { return handler{Handler: to, levels: l} }

// Naming is Handler for a log whose lines say of which part of the core they are, for programs that
// read them.
func (l *Levels) Naming(to slog.Handler) slog.Handler {
	return handler{Handler: to, levels: l, names: true}
}

type handler struct {
	slog.Handler
	levels *Levels
	// part and plugin are what the logger's attributes say.
	part, plugin string
	// grouped: attributes from here on are below a group.
	grouped bool
	// names: the part is written.
	names bool
}

// Enabled implements slog.Handler.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	least := h.levels.of(h.part, h.plugin)
	if h.plugin == "" {
		least = h.levels.least(h.part)
	}
	return level >= least && h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	plugin := h.plugin
	if plugin == "" && !h.grouped {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == pluginAttr {
				plugin = a.Value.String()
			}
			return plugin == ""
		})
	}
	if r.Level < h.levels.of(h.part, plugin) {
		return nil
	}
	if h.names && h.part != "" && !h.grouped {
		r = r.Clone()
		r.AddAttrs(slog.String(Attr, h.part))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if !h.grouped {
		for _, a := range attrs {
			switch a.Key {
			case Attr:
				h.part = a.Value.String()
				h.levels.mu.Lock()
				h.levels.parts[h.part] = true
				h.levels.mu.Unlock()
			case pluginAttr:
				h.plugin = a.Value.String()
			}
		}
		attrs = slices.DeleteFunc(slices.Clone(attrs), func(a slog.Attr) bool { return a.Key == Attr })
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	if h.names && h.part != "" && !h.grouped {
		h.Handler = h.Handler.WithAttrs([]slog.Attr{slog.String(Attr, h.part)})
	}
	h.Handler, h.grouped = h.Handler.WithGroup(name), true
	return h
}

func word(level slog.Level) string { return strings.ToLower(level.String()) }
