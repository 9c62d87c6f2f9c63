package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/sdk"
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
	var s settings
	if err := decode(config, &s); err != nil {
		return Config{}, err
	}
	c := Config{Dir: s.Dir, MaxFile: s.MaxFile}
	if c.MaxFile == 0 {
		c.MaxFile = defaultMaxFile
	}
	if c.MaxFile < 0 {
		return c, field("maxFile", "must be a number of bytes above 0")
	}
	var err error
	if c.Settle, err = duration("settle", s.Settle, defaultSettle); err != nil {
		return c, err
	}
	if c.Settle <= 0 {
		return c, field("settle", "must be above 0, such as 1ms")
	}
	if c.Rescan, err = duration("rescan", s.Rescan, defaultRescan); err != nil {
		return c, err
	}
	return c, checkDir(c.Dir)
}

func decode(config []byte, into *settings) error {
	if len(config) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(config))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return field(wrong.Field, "must be a %s, not a %s", wrong.Type, wrong.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return field(name, "unknown field%s", protoyaml.Suggest(name, []string{"dir", "settle", "rescan", "maxFile"}))
	}
	return fmt.Errorf("config: %w", err)
}

func duration(name, text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, field(name, "%q is no duration; write such as 20ms", text)
	}
	return d, nil
}

func checkDir(dir string) error {
	if dir == "" {
		return field("dir", "is missing: name the directory with the configuration")
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return field("dir", "directory %s does not exist; create it or name another", dir)
	case err != nil:
		return field("dir", "%v", err)
	case !info.IsDir():
		return field("dir", "%s is a file; name the directory it is in", dir)
	}
	if _, err := os.ReadDir(dir); err != nil {
		return field("dir", "cannot be read: %v", err)
	}
	return nil
}

func field(name, format string, args ...any) error {
	return &sdk.FieldError{Field: name, Err: fmt.Errorf(format, args...)}
}
