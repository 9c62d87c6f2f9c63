package static

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's `config` in plugins.yaml: one of the two.
type Config struct {
	// Dir is a directory, read with all that is below it: files .yaml, .yml and .json.
	Dir string `json:"dir" doc:"A directory, read with all that is below it."`
	// Files are read one by one; one that isn't there yet is waited for.
	Files []string `json:"files" min:"1" doc:"Files, read one by one."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	switch {
	case c.Dir == "" && len(c.Files) == 0:
		return strict.Errorf("dir", "is missing: name the directory with the resources, or `files`")
	case c.Dir != "" && len(c.Files) > 0:
		return strict.Errorf("files", "excludes `dir`; name either")
	}
	for i, f := range c.Files {
		if f == "" {
			return strict.Errorf(strict.At("files", i), "is empty")
		}
		c.Files[i] = filepath.Clean(f)
	}
	if c.Dir == "" {
		return nil
	}
	c.Dir = filepath.Clean(c.Dir)
	return checkDir(c.Dir)
}

func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return strict.Errorf("dir", "directory %s does not exist; create it or name another", dir)
	case err != nil:
		return strict.Errorf("dir", "%v", err)
	case !info.IsDir():
		return strict.Errorf("dir", "%s is a file; say `files: [%s]`", dir, dir)
	}
	return nil
}

// owns reports whether a file is one of those that the config names; the table may hold those of
// other entries.
func (c *Config) owns(file string) bool {
	if c.Dir == "" {
		return slices.Contains(c.Files, file)
	}
	return c.Dir == "." && !filepath.IsAbs(file) || strings.HasPrefix(file, strings.TrimSuffix(c.Dir, "/")+"/")
}
