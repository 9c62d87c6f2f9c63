package swap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"go.yaml.in/yaml/v3"
)

// Request is what a command wants changed of an entry; empty: nothing, the plugin is started anew
// as plugins.yaml has it.
type Request struct {
	// One of Process (a command and its arguments), Wasm (a path), Builtin (KIND/NAME) and Plugin
	// (a reference of an artifact).
	Process []string `json:"process,omitempty"`
	Wasm    string   `json:"wasm,omitempty"`
	Builtin string   `json:"builtin,omitempty"`
	Plugin  string   `json:"plugin,omitempty"`
	// Config is YAML that takes the place of the entry's config; ConfigFile is the file that it
	// stands in, to name places in it.
	Config     string `json:"config,omitempty"`
	ConfigFile string `json:"configFile,omitempty"`
	// Disabled reports whether it is to run; nil: as it is.
	Disabled *bool `json:"disabled,omitempty"`
}

func (r Request) empty() bool {
	return len(r.Process) == 0 && r.Wasm == "" && r.Builtin == "" && r.Plugin == "" && r.Config == "" && r.Disabled == nil
}

// editor changes the file, as commands and rollbacks want.
type editor struct {
	file    *document
	desired *desired
	running *running
	// dir is what paths in the file are relative to, find where a command is.
	dir  string
	find func(command string) (string, error)
	// meaning asks the registry of an entry's artifact for its digest.
	meaning func(ctx context.Context, e *manifest.Entry) (string, error)
}

// wanted returns the entry that a request makes, and the file's text with it.
func (ed *editor) wanted(ctx context.Context, name, what string, r Request) (*manifest.Entry, []byte, error) {
	says, text := ed.file.now()
	set, _ := ed.desired.expanded(says)
	if now, _ := set.Get(name); now != nil {
		switch {
		case now.ForEach != nil:
			return nil, nil, fmt.Errorf("plugin %s runs once for each row of %s: name one of its instances (%s@ROW), or edit the file, which is followed",
				name, now.ForEach.Table, name)
		case now.Of != "" && !r.empty():
			return nil, nil,
				fmt.Errorf("plugin %s is one of the instances that plugin %s has for rows: edit that entry in the file, which is followed", name, now.Of)
		}
	}
	if r.empty() {
		if what == doRestart {
			set = ed.running.now()
		}
	} else {
		edit, err := manifest.NewEdit(text)
		if err == nil {
			text, err = edit.Entry(name, func(m manifest.Mapping) error { return ed.edit(m, r) })
		}
		if err != nil {
			return nil, nil, err
		}
		if set, err = ed.file.parse(text); err != nil {
			return nil, nil, fmt.Errorf("what plugins.yaml would be: %w", err)
		}
		if r.Plugin != "" {
			if set, text, err = ed.pinned(ctx, name, set, text); err != nil {
				return nil, nil, err
			}
		}
	}
	e, _ := set.Get(name)
	if e == nil {
		return nil, nil, fmt.Errorf("there is no plugin %s", name)
	}
	if r.Config != "" && r.ConfigFile != "" {
		e.ConfigIn(r.ConfigFile, []byte(r.Config))
	}
	return e, text, nil
}

// pinned is a set, and its text, with the digest of an entry's artifact as it is now, unless the
// entry says that it is meant not to be pinned, or who must have signed it.
func (ed *editor) pinned(ctx context.Context, name string, set *manifest.Set, text []byte) (*manifest.Set, []byte, error) {
	e, _ := set.Get(name)
	if e == nil || e.Pinned() || e.Insecure {
		return set, text, nil
	}
	digest, err := ed.meaning(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	edit, err := manifest.NewEdit(text)
	if err == nil {
		text, err = edit.Entry(name, func(m manifest.Mapping) error { return m.Set("plugin", string(e.Plugin.At(digest))) })
	}
	if err == nil {
		set, err = ed.file.parse(text)
	}
	return set, text, err
}

// edit makes the request part of an entry.
func (ed *editor) edit(m manifest.Mapping, r Request) error {
	if r.Disabled != nil {
		m.Delete("disabled")
		if *r.Disabled {
			return m.Set("disabled", true)
		}
		return nil
	}
	if r.Config != "" {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(r.Config), &doc); err != nil {
			return fmt.Errorf("config: %w", err)
		}
		if len(doc.Content) != 1 {
			return errors.New("the config is empty")
		}
		if err := m.Set("config", doc.Content[0]); err != nil {
			return err
		}
	}
	return ed.editCarrier(m, r)
}

// editCarrier says what runs. A program is pinned as it is now, unless the entry says that it is
// meant not to be.
func (ed *editor) editCarrier(m manifest.Mapping, r Request) error {
	word, value := "", any(nil)
	switch {
	case r.Plugin != "":
		return editPlugin(m, r.Plugin)
	case r.Builtin != "":
		word, value = "builtin", r.Builtin
	case r.Wasm != "":
		word, value = "wasm", map[string]string{"path": ed.relative(r.Wasm)}
	case len(r.Process) > 0:
		p := map[string]any{"command": ed.relative(r.Process[0])}
		if len(r.Process) > 1 {
			p["args"] = r.Process[1:]
		}
		word, value = "process", p
	default:
		return nil
	}
	m.Delete("sha256")
	if m.Has("plugin") { // what stands beside it says how that ran
		for _, beside := range []string{"process", "wasm", "pull"} {
			m.Delete(beside)
		}
	}
	for _, old := range []string{"builtin", "plugin", "process", "wasm"} {
		if !m.Has(old) {
			continue
		}
		if inner, ok := m.At(old); ok && inner.Has("allow") && !m.Has("allow") {
			inner.Move("allow", m)
		}
		if err := m.Rename(old, word, value); err != nil {
			return err
		}
	}
	if m.Text("insecure") == "true" {
		return nil
	}
	return manifest.Pin(m, ed.dir, ed.find)
}

// editPlugin says that an artifact runs. In the place of another one it runs as that did.
func editPlugin(m manifest.Mapping, reference string) error {
	if m.Has("plugin") {
		return m.Set("plugin", reference)
	}
	m.Delete("sha256")
	for _, old := range []string{"builtin", "process", "wasm"} {
		if !m.Has(old) {
			continue
		}
		if inner, ok := m.At(old); ok && inner.Has("allow") && !m.Has("allow") {
			inner.Move("allow", m)
		}
		return m.Rename(old, "plugin", reference)
	}
	return m.Set("plugin", reference)
}

// relative is a path as the file has it: relative to its directory, if it is below.
func (ed *editor) relative(path string) string {
	dir, err := filepath.Abs(ed.dir)
	if err != nil || !filepath.IsAbs(path) {
		return path
	}
	if short, err := filepath.Rel(dir, path); err == nil && !strings.HasPrefix(short, "..") {
		return "./" + short
	}
	return path
}

// write puts a text into the file, and reports whether it did. What can't be written is noted.
func (ed *editor) write(c *attempt, text []byte) bool {
	_, before := ed.file.now()
	if err := ed.put(text); err != nil {
		c.note("%s could not be written (%v): this holds until the process ends", ed.file.path, err)
		return false
	}
	c.undo, c.wrote = before, text
	return true
}

// put replaces the file in one step.
func (ed *editor) put(text []byte) error {
	set, err := ed.file.parse(text)
	if err != nil {
		return err
	}
	err = manifest.Write(ed.file.path, text)
	if err == nil {
		ed.file.becomes(set, text)
		ed.desired.reached(ed.desired.expand(set))
	}
	return err
}

// unwrite takes back what a change wrote, if nobody has written since. The turn is held.
func (ed *editor) unwrite(c *attempt) {
	if c.undo == nil {
		return
	}
	if now, err := os.ReadFile(ed.file.path); err != nil || string(now) != string(c.wrote) {
		c.note("plugins.yaml was changed meanwhile and still names what was rolled back")
		return
	}
	if err := ed.put(c.undo); err != nil {
		c.note("%s could not be written: %v", ed.file.path, err)
	}
}

// textBefore is what plugins.yaml becomes with an entry as it was; nil: it stays as it is. The note
// says what else there is to know.
func (ed *editor) textBefore(was past) (text []byte, note string) {
	name := was.entry.Name
	if ed.file.path == "" || was.entry.Of != "" {
		return nil, ""
	}
	says, now := ed.file.now()
	if in, _ := says.Get(name); in != nil && manifest.Same(in, was.entry) {
		return nil, ""
	}
	if was.text == nil {
		return nil, "what runs then stands in no plugins.yaml, for it was swapped in with --ephemeral: the file stays as it is, and names something else"
	}
	if was.wrote != nil && slices.Equal(was.wrote, now) {
		return was.text, ""
	}
	text, err := ed.withEntryOf(was.text, name)
	if err == nil {
		var set *manifest.Set
		if set, err = ed.file.parse(text); err == nil {
			if in, _ := set.Get(name); in == nil || !manifest.Same(in, was.entry) {
				err = errors.New("its entry would mean something else there")
			}
		}
	}
	if err != nil {
		return nil, fmt.Sprintf("plugins.yaml stays as it is, and names something else: %v", err)
	}
	return text, ""
}

// withEntryOf is the file's text with an entry as another text has it.
func (ed *editor) withEntryOf(other []byte, name string) ([]byte, error) {
	from, err := manifest.NewEdit(other)
	if err != nil {
		return nil, err
	}
	_, now := ed.file.now()
	to, err := manifest.NewEdit(now)
	if err != nil {
		return nil, err
	}
	return to.Entry(name, func(m manifest.Mapping) error {
		_, err := from.Entry(name, func(was manifest.Mapping) error {
			m.Become(was)
			return nil
		})
		return err
	})
}
