package file

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

// loaded is what reading a file gave.
type loaded struct {
	path string
	// info is the file's stat before it was read; nil where the file is gone.
	info fs.FileInfo
	// err says why it could not be read.
	err   error
	empty bool
	// parsed is the content; the last parse itself where nothing changed.
	parsed *catalog.Parsed
	// foreign are objects of other APIs, as far as they were parsed anew.
	foreign []kinds.Document
}

// job is a file to read, and its last parse, which may be nil.
type job struct {
	path   string
	before *catalog.Parsed
}

// room returns how much garbage may gather while files are read, in percent of what is in use
// (GOGC). Where little may, reading many files takes twice as long; what is kept lies scattered
// where much may, and a few files are not worth that.
func room(files int) int { return min(25+files/40, 200) }

const manyFiles = 100

// loadAll reads files, as many at once as there are processors, and returns what they gave in the
// order of the jobs.
func loadAll(reader kinds.Reader, jobs []job, maxFile int64) []loaded {
	if len(jobs) > manyFiles {
		before := debug.SetGCPercent(room(len(jobs)))
		defer func() {
			debug.SetGCPercent(before)
			debug.FreeOSMemory()
		}()
	}
	results := make([]loaded, len(jobs))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		workers.Go(func() {
			for i := range next {
				results[i] = load(reader, jobs[i], maxFile)
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

// load reads and parses one file.
func load(reader kinds.Reader, j job, maxFile int64) loaded {
	l := loaded{path: j.path}
	info, err := os.Stat(j.path)
	switch {
	case isGone(err) || err == nil && !info.Mode().IsRegular():
		return l
	case err == nil && info.Size() > maxFile:
		err = fmt.Errorf("it has %d bytes, and maxFile allows %d", info.Size(), maxFile)
	}
	l.info = info
	if err != nil {
		l.err = err
		return l
	}
	content, err := readUpTo(j.path, info.Size(), maxFile)
	if isGone(err) {
		return loaded{path: j.path}
	}
	l.err, l.empty = err, len(bytes.Trim(content, " \t\r\n\x00")) == 0 // some file systems leave zeros where a write was cut off
	if err == nil {
		l.parsed, l.err = catalog.Parse(reader, j.path, content, j.before, l.fresh)
	}
	return l
}

func (l *loaded) fresh(d kinds.Document) {
	if d.Foreign != "" {
		l.foreign = append(l.foreign, d)
	}
}

// isGone reports whether an error says that there is no such file any more.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// readUpTo returns a file's content, of which size is what was last heard.
func readUpTo(path string, size, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // what has become a pipe meanwhile must not be waited for
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if now, err := f.Stat(); err != nil || !now.Mode().IsRegular() {
		return nil, cmp.Or(err, errors.New("it is no file"))
	}
	content := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err = content.ReadFrom(io.LimitReader(f, limit))
	return content.Bytes(), err
}
