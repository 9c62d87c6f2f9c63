package levels

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// TestLevels: each area has the default's level until it has its own, and a plugin's counts for
// lines about it, whichever part writes them and however it is named.
func TestLevels(t *testing.T) {
	var out bytes.Buffer
	base := &slog.LevelVar{}
	l := New(base)
	log := slog.New(l.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if Of(log) != l || Of(slog.New(slog.DiscardHandler)) != nil {
		t.Error("a log's levels are not found")
	}
	xds, host := log.With(Attr, "core/xds").With("node", "a"), log.With(Attr, "core/host")
	mesh := host.With("plugin", "mesh")
	plugins := []string{"mesh", "files"}
	say := func() string {
		out.Reset()
		xds.Debug("1")
		xds.Info("2")
		host.Debug("3", "plugin", "files")
		host.Info("4", "plugin", "files")
		mesh.Debug("5")
		mesh.Info("6")
		xds.WithGroup("g").Debug("7", "plugin", "files")
		var said string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "area=") {
				t.Errorf("the area is written: %s", line)
			}
			_, rest, _ := strings.Cut(line, "msg=")
			said += rest[:1]
		}
		return said
	}
	for _, c := range []struct{ area, level, want string }{
		{"default", "info", "246"},
		{"core/xds", "debug", "12467"},
		{"plugin/files", "debug", "123467"},
		{"core/host", "error", "12347"},
		{"plugin/mesh", "INFO", "123467"},
		{"core/xds", "default", "2346"},
		{"default", "warn", "346"},
		{"plugin/files", "error", "6"},
		{"plugin/mesh", "default", ""},
	} {
		if err := l.Set(c.area, c.level, plugins); err != nil {
			t.Fatal(err)
		}
		if got := say(); got != c.want {
			t.Errorf("%s=%s: %s is said, want %s", c.area, c.level, got, c.want)
		}
	}
	var list []string
	for _, a := range l.List(plugins) {
		text := a.Area + "=" + a.Level
		if a.Own {
			text += "!"
		}
		list = append(list, text)
	}
	if got := strings.Join(list, " "); got != "default=warn core/host=error! core/xds=warn plugin/files=error! plugin/mesh=warn" {
		t.Error(got)
	}
	for area, level := range map[string]string{"core/xsd": "info", "plugin/none": "info", "default": "default", "core/xds": "loud"} {
		if err := l.Set(area, level, plugins); err == nil || !strings.Contains(err.Error(), "are") {
			t.Errorf("%s=%s: %v", area, level, err)
		}
	}
}

// TestNaming: where that is wanted a line says once of which part of the core it is, the last that
// its logger was given, also of those with groups.
func TestNaming(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(New(&slog.LevelVar{}).Naming(slog.NewJSONHandler(&out, nil)))
	log.Info("1")
	admin := log.With(Attr, "core/server").With("a", 1).With(Attr, "core/admin")
	admin.Info("2", "b", 2)
	admin.WithGroup("g").With("c", 3).Info("3", "d", 4)
	var said []string
	for line := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(line, `"msg":`)
		said = append(said, strings.TrimSpace(rest))
	}
	want := []string{`"1"}`, `"2","a":1,"b":2,"area":"core/admin"}`, `"3","a":1,"area":"core/admin","g":{"c":3,"d":4}}`}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}
