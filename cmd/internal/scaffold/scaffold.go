// Package scaffold writes the project of a new plugin, from the examples.
package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/coxswain-mesh/coxswain"
	"github.com/coxswain-mesh/coxswain/examples"
)

// Project is what to write.
type Project struct {
	Kind, Lang, Name string
	// SDK is a folder with a checkout of this module, which a project in Go is to use; empty: the
	// released Version, or, where that is empty too, a copy of the SDK that this program was built
	// with.
	SDK, Version string
}

// copied is the folder that the copy of the SDK gets in a project.
const copied = "coxswain-sdk"

// Module is the Go module that has the SDK.
const Module = "github.com/coxswain-mesh/coxswain"

//go:embed templates
var templates embed.FS

// Languages returns those that there are projects in.
func Languages() []string { return []string{"go", "rust", "python", "c"} }

// example says which example a project begins with.
func example(kind, lang string) (folder, file string, err error) {
	folders := map[string]string{
		"go/registry": "registry-hello", "go/config": "config-greetings", "go/generator": "generator-clusters", "go/patch": "patch-timeout",
		"go/authenticator": "authenticator-token", "go/controller": "controller-count",
		"python/registry": "registry-csv-python", "c/patch": "patch-timeout-c", "rust/patch": "patch-timeout-rust",
	}
	files := map[string]string{"go": "main.go", "python": "registry.py", "c": "patch.c", "rust": "patch.rs"}
	if folder = folders[lang+"/"+kind]; folder != "" {
		return folder, files[lang], nil
	}
	switch lang {
	case "go":
		return "", "", fmt.Errorf("--kind is registry, config, generator, patch, authenticator or controller, not %q", kind)
	case "python":
		return "", "", fmt.Errorf("in python there is a project for --kind registry alone; docs/contract.md says what other kinds have to do")
	case "c", "rust":
		return "", "", fmt.Errorf("in %s there is a project for --kind patch alone; docs/contract.md says what other kinds have to do", lang)
	}
	return "", "", fmt.Errorf("--lang is go, rust, python or c, not %q", lang)
}

// Write writes the project into a new folder.
func (p Project) Write(dir string) error {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]*$`).MatchString(p.Name) {
		return fmt.Errorf("a plugin's name is made of a-z, 0-9, -, _ and ., not %q", p.Name)
	}
	folder, file, err := example(p.Kind, p.Lang)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	if err := p.sources(dir, folder, file); err != nil {
		return err
	}
	if p.Lang == "go" && p.SDK == "" && p.Version == "" {
		if err := copySDK(filepath.Join(dir, copied)); err != nil {
			return err
		}
		p.SDK = "./" + copied
	}
	for _, from := range []string{"templates", "templates/" + p.Lang} {
		if err := p.fill(dir, from); err != nil {
			return err
		}
	}
	return nil
}

// copySDK writes the SDK, without its tests, as a module of its own.
func copySDK(to string) error {
	return fs.WalkDir(coxswain.SDK(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o777)
		case strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(coxswain.SDK(), path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), text, 0o666)
	})
}

// sources copies an example, with the project's name for its own.
func (p Project) sources(dir, folder, file string) error {
	names := []string{file}
	if p.Lang == "go" {
		names = append(names, "main_test.go")
	}
	for _, name := range names {
		text, err := fs.ReadFile(examples.Files(), folder+"/"+name)
		if err != nil {
			return err
		}
		text = bytes.Replace(text, []byte("// Command "+folder), []byte("// Command "+p.Name), 1)
		text = regexp.MustCompile(`\bName: "[a-z]+", Version`).ReplaceAll(text, []byte(`Name: "`+p.Name+`", Version`))
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// fill fills in templates.
func (p Project) fill(dir, from string) error {
	list, err := templates.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range list {
		if entry.IsDir() {
			continue
		}
		t, err := template.ParseFS(templates, from+"/"+entry.Name())
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, p); err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimSuffix(entry.Name(), ".tmpl"))
		mode := fs.FileMode(0o666)
		if strings.HasSuffix(to, ".sh") {
			mode = 0o777
		}
		if err := os.WriteFile(to, text.Bytes(), mode); err != nil {
			return err
		}
	}
	return nil
}

// Module returns the module's path, for templates.
func (Project) Module() string { return Module }

// Config is what the example's config is, as JSON; empty where it has none.
func (p Project) Config() string {
	switch {
	case p.Lang == "python":
		return `{"file": "services.csv"}`
	case p.Lang == "go" && p.Kind == "config":
		return `{"hello": "world"}`
	case p.Lang == "go" && p.Kind == "authenticator":
		return `{"d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272": "spiffe://cluster.local/ns/cave/sa/ali"}`
	}
	return ""
}
