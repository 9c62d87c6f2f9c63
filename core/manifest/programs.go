package manifest

import "os"

// Programs returns the files that an entry's program is made of, as far as they are known: the
// command, if it is a path, arguments that are files, the files that belong to it, and the module.
// A built-in has none.
func (s *Set) Programs(e *Entry) []string {
	switch {
	case e.Plugin != "":
		return nil // what was fetched is named by its content
	case e.Wasm != nil:
		return []string{Under(s.Dir(), e.Wasm.Path)}
	case e.Process == nil:
		return nil
	}
	var all []string
	for _, name := range append([]string{e.Process.Command}, e.Process.Args...) {
		path := Under(s.Dir(), name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			all = append(all, path)
		}
	}
	for _, f := range e.Process.Files {
		all = append(all, Under(s.Dir(), f.Path))
	}
	return all
}
