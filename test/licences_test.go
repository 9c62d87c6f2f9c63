package test

import (
	"encoding/json"
	"errors"
	"io"
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
