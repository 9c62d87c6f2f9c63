package test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// licences by a phrase that only they have, and whether a binary under Apache 2.0 may contain code
// under them. The Mozilla licence binds single files; none of them is changed here.
var licences = []struct{ name, phrase string }{
	{"Apache-2.0", "Apache License"},
	{"MPL-2.0", "Mozilla Public License"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software"},
	{"BSD", "Redistribution and use in source and binary forms"},
}

// dep is what `go list -deps -json` says of a package.
type dep struct {
	ImportPath string
	Standard   bool
	Module     *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// TestLicences looks at each module that the program is linked with.
func TestLicences(t *testing.T) {
	for path, dir := range linked(t) {
		text := licenceText(t, dir)
		if text == "" {
			t.Errorf("%s: no licence file in %s", path, dir)
			continue
		}
		if !slices.ContainsFunc(licences, func(l struct{ name, phrase string }) bool { return strings.Contains(text, l.phrase) }) {
			t.Errorf("%s: its licence is none of those that this test knows; look at %s", path, dir)
		}
	}
}

// update writes what is made from the tree anew.
var update = flag.Bool("update", false, "write anew what is made from the tree: NOTICE, docs/map.md")

// TestNotice: NOTICE has the licence of each module that the program is linked with, of the
// page's packages, and of nothing else: go test ./test -run TestNotice -update.
func TestNotice(t *testing.T) {
	modules := linked(t)
	var out strings.Builder
	out.WriteString("Coxswain\nLicensed under the Apache License, Version 2.0: see LICENSE.\n\nThe program contains " +
		"Go's standard library and these modules, under their own licences:\n")
	texts, words := map[string][]string{}, map[string]string{} // modules by the texts of their licences: most have one of a few
	add := func(path, text string) {
		same := strings.Join(strings.Fields(text), " ")
		if words[same] == "" {
			words[same] = normal(text)
		}
		texts[words[same]] = append(texts[words[same]], path)
	}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		add(path, licenceText(t, modules[path]))
		if text, err := os.ReadFile(filepath.Join(modules[path], "NOTICE")); err == nil {
			add(path+" (notice)", string(text))
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	goes, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	add("Go", string(goes))
	page, err := os.ReadFile("../core/ui/dist/LICENCES.txt")
	if err != nil {
		t.Fatal(err)
	}
	add("the page of core/ui", string(page))
	byFirst := map[string]string{}
	for text, paths := range texts {
		byFirst[paths[0]] = text
	}
	for _, first := range slices.Sorted(maps.Keys(byFirst)) {
		text := byFirst[first]
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s", strings.Repeat("=", 80), strings.Join(texts[text], "\n"), text)
	}
	const file = "../NOTICE"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(file)
	if err != nil || string(is) != out.String() {
		t.Errorf("NOTICE is not what the program's modules say (%v): run go test ./test -run TestNotice -update", err)
	}
}

// normal is a licence without spaces at the ends of lines.
func normal(text string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))) {
		out.WriteString(strings.TrimRight(line, " \t\n\f") + "\n")
	}
	return out.String()
}

func TestOwnLicence(t *testing.T) {
	if text := licenceText(t, ".."); !strings.Contains(text, "Apache License") {
		t.Error("LICENSE is not the Apache License")
	}
}

// linked returns the modules that the program is made of, with their directories.
func linked(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Module", "./cmd/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	modules := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p dep
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return modules
		case err != nil:
			t.Fatal(err)
		}
		if !p.Standard && p.Module != nil && !p.Module.Main {
			modules[p.Module.Path] = p.Module.Dir
		}
	}
}

// licenceText returns the licence files of a module, or, as some modules are folders of a
// repository, an empty text.
func licenceText(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	return text.String()
}
