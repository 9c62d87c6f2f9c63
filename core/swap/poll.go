package swap

import (
	"os"
	"time"
)

// pollEvery is how often Develop looks at programs. A program must have stayed as it is for as
// long: builds write in pieces.
const pollEvery = 200 * time.Millisecond

const (
	// waitAtMost is how long a file is waited for that goes on changing.
	waitAtMost = time.Second
	// rereadEvery is how often it is read though it seems to be as it was: a write may leave size
	// and time as they are.
	rereadEvery = 10 * time.Second
)

// poll decides when a file is read.
type poll struct {
	seen fileStat
	// since is when it was first seen to have changed; zero: it is as it was read.
	since, read time.Time
}

// due reports whether it is time to read the file: once it has stayed as it is from one look to the
// next, for editors write in pieces.
func (p *poll) due(now time.Time, is fileStat) bool {
	switch {
	case !is.same(p.seen):
		p.seen = is
		if p.since.IsZero() {
			p.since = now
		}
		if now.Sub(p.since) < waitAtMost {
			return false
		}
	case p.since.IsZero() && now.Sub(p.read) < rereadEvery:
		return false
	}
	p.since, p.read = time.Time{}, now
	return true
}

// fileStat is what can be seen of a file without reading it; nil: it can't be seen.
type fileStat struct{ info os.FileInfo }

func statFile(path string) fileStat {
	info, err := os.Stat(path)
	if err != nil {
		return fileStat{}
	}
	return fileStat{info}
}

func (a fileStat) same(b fileStat) bool {
	if a.info == nil || b.info == nil {
		return a.info == b.info
	}
	return os.SameFile(a.info, b.info) && a.info.ModTime().Equal(b.info.ModTime()) && a.info.Size() == b.info.Size()
}
