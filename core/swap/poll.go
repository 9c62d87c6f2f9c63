package swap

import (
	"os"
	"time"
)

// glance is how often Develop looks at programs. A program must have stayed as it is for as long:
// builds write in pieces.
const glance = 200 * time.Millisecond

const (
	// putOff is how long a file is waited for that goes on changing.
	putOff = time.Second
	// lookAgain is how often it is read though it seems to be as it was: a write may leave size and
	// time as they are.
	lookAgain = 10 * time.Second
)

// gaze decides when a file is read.
type gaze struct {
	seen sight
	// since is when it was first seen to have changed; zero: it is as it was read.
	since, read time.Time
}

// due reports whether it is time to read the file: once it has stayed as it is from one look to the
// next, for editors write in pieces.
func (g *gaze) due(now time.Time, is sight) bool {
	switch {
	case !is.same(g.seen):
		g.seen = is
		if g.since.IsZero() {
			g.since = now
		}
		if now.Sub(g.since) < putOff {
			return false
		}
	case g.since.IsZero() && now.Sub(g.read) < lookAgain:
		return false
	}
	g.since, g.read = time.Time{}, now
	return true
}

// sight is what can be seen of a file without reading it; nil: it can't be seen.
type sight struct{ info os.FileInfo }

func lookAt(path string) sight {
	info, err := os.Stat(path)
	if err != nil {
		return sight{}
	}
	return sight{info}
}

func (a sight) same(b sight) bool {
	if a.info == nil || b.info == nil {
		return a.info == b.info
	}
	return os.SameFile(a.info, b.info) && a.info.ModTime().Equal(b.info.ModTime()) && a.info.Size() == b.info.Size()
}
