package host

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/core/ticks"
)

const (
	// tendEvery is how often the runtime directory is looked at: commands look for the core in it.
	tendEvery = 200 * time.Millisecond
	// touchEvery is how often it is made to look used: cleaners of temporary files take what nobody
	// has used for days.
	touchEvery = time.Hour
)

// tend keeps the directory there until ctx ends.
func (d *runtimeDir) tend(ctx context.Context, log *slog.Logger) {
	touched, said := time.Now(), ""
	for now := range ticks.Every(ctx, tendEvery) {
		if err := d.ensure(); err != nil {
			if text := err.Error(); text != said {
				said = text
				log.Error("the runtime directory is gone and can't be made anew; no plugin can be started", "error", err)
			}
			continue
		}
		said = ""
		if now.Sub(touched) >= touchEvery {
			touched = now
			touch(d.path, now)
		}
	}
}

// touch makes a directory, its parent and all that is in it look used. What can't be touched is
// another user's, who uses it.
func touch(path string, now time.Time) {
	_ = os.Chtimes(filepath.Dir(path), now, now)
	_ = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&fs.ModeSymlink == 0 {
			_ = os.Chtimes(at, now, now)
		}
		return nil
	})
}
