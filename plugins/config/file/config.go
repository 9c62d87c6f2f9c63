package file

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's config.
type Config struct {
	// Dir is the directory, read with all that is below it.
	Dir string
	// Settle is how long a path must be quiet before it is read.
	Settle time.Duration
	// Rescan is how often everything is looked at even without an event; 0: never.
	Rescan time.Duration
	// MaxFile is the size in bytes beyond which a file is refused.
	MaxFile int64
}

// Defaults. An editor's save is over in far less than the settle time; a copy that takes longer makes events all the
// while. Gathering what belongs together is the core's work (debounceAfter), so that waiting longer here would only add to it.
const (
	defaultSettle  = 20 * time.Millisecond
	defaultRescan  = time.Minute
	defaultMaxFile = 32 << 20
)

// settings is Config as it is written.
type settings struct {
	Dir     string `json:"dir"`
	Settle  string `json:"settle"`
	Rescan  string `json:"rescan"`
	MaxFile int64  `json:"maxFile"`
}

// parse reads a config and checks it.
func parse(config []byte) (Config, error) {
	s := settings{MaxFile: defaultMaxFile}
	if err := strict.Decode(config, &s); err != nil {
		return Config{}, err
	}
	c := Config{Dir: s.Dir, MaxFile: s.MaxFile}
	if c.MaxFile <= 0 {
		return c, strict.Errorf("maxFile", "must be a number of bytes above 0")
	}
	var err error
	if c.Settle, err = strict.Duration("settle", s.Settle, defaultSettle); err != nil {
		return c, err
	}
	if c.Settle == 0 {
		return c, strict.Errorf("settle", "must be above 0, such as 1ms")
	}
	if c.Rescan, err = strict.Duration("rescan", s.Rescan, defaultRescan); err != nil {
		return c, err
	}
	return c, checkDir(c.Dir)
}

func checkDir(dir string) error {
	if dir == "" {
		return strict.Errorf("dir", "is missing: name the directory with the configuration")
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return strict.Errorf("dir", "directory %s does not exist; create it or name another", dir)
	case err != nil:
		return strict.Errorf("dir", "%v", err)
	case !info.IsDir():
		return strict.Errorf("dir", "%s is a file; name the directory it is in", dir)
	}
	if _, err := os.ReadDir(dir); err != nil {
		return strict.Errorf("dir", "cannot be read: %v", err)
	}
	return nil
}
