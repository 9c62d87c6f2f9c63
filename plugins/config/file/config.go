package file

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Config is the entry's config.
type Config struct {
	Dir     string        `json:"dir" required:"true" doc:"The directory, read with all that is below it."`
	Settle  time.Duration `json:"settle" min:"1ms" doc:"How long a path must be quiet before it is read."`
	Rescan  time.Duration `json:"rescan" doc:"How often everything is looked at even without an event; 0s: never."`
	MaxFile int64         `json:"maxFile" min:"1" doc:"Bytes beyond which a file is refused."`
	kinds.Ordering
}

// defaults are what counts where the config says nothing. An editor's save is over in far less than
// the settle time; a copy that takes longer makes events all the while. Gathering what belongs
// together is the core's work (debounceAfter), so that waiting longer here would only add to it.
func defaults() Config {
	return Config{Settle: 20 * time.Millisecond, Rescan: time.Minute, MaxFile: 32 << 20}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if err := c.Ordering.Check(); err != nil {
		return err
	}
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
		return strict.Errorf("dir", "%s is a file; name the directory it is in", dir)
	}
	if _, err := os.ReadDir(dir); err != nil {
		return strict.Errorf("dir", "cannot be read: %v", err)
	}
	return nil
}
