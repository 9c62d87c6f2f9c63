package process

import (
	"bytes"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"
)

// What of a plugin's standard error is passed on: the first lines of a burst, so many lines and
// bytes a second, and so much of a line. More is read, counted and forgotten.
const (
	linesPerSecond, linesAtOnce = 50, 400
	bytesPerSecond, bytesAtOnce = 32 << 10, 256 << 10
	longestLine                 = 4 << 10
	// drained is how many bytes a second are read at most: who writes more waits.
	drained = 64 << 20
	chunk   = 64 << 10
	// telling is how often it is said how much was left out.
	telling = 10 * time.Second
)

// stderr reads a plugin's standard error.
type stderr struct {
	tail *tail
	// copy gets the lines that are passed on.
	copy io.Writer
	// leftOut is told how much was not passed on since it was told last.
	leftOut func(lines, bytes int)

	lines, bytes *rate.Limiter
	line         []byte // of a line whose end hasn't come yet, at most longestLine
	cut          int    // what that line has had beyond that
	lost, size   int    // lines and bytes that were not passed on
	told         time.Time
}

func newStderr(t *tail, to io.Writer, leftOut func(lines, bytes int)) *stderr {
	return &stderr{
		tail: t, copy: to, leftOut: leftOut, lines: rate.NewLimiter(linesPerSecond, linesAtOnce), bytes: rate.NewLimiter(bytesPerSecond, bytesAtOnce),
	}
}

// run reads until the end.
func (s *stderr) run(from io.Reader) {
	buf := make([]byte, chunk)
	for {
		began := time.Now()
		n, err := from.Read(buf)
		s.split(buf[:n])
		if time.Since(s.told) > telling {
			s.tell()
		}
		if err != nil {
			break
		}
		if n == len(buf) { // it writes faster than this reads
			time.Sleep(time.Duration(n)*time.Second/drained - time.Since(began))
		}
	}
	if len(s.line) > 0 {
		s.end(nil)
	}
	s.tell()
}

// split splits what was read into lines. If nothing more may be passed on only the lines that the
// tail keeps are looked at.
func (s *stderr) split(b []byte) {
	if s.full() {
		b = s.skip(b)
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			room := min(len(b), longestLine-len(s.line))
			s.line, s.cut = append(s.line, b[:room]...), s.cut+len(b)-room
			return
		}
		s.end(b[:i])
		b = b[i+1:]
	}
}

func (s *stderr) full() bool { return s.lines.Tokens() < 1 || s.bytes.Tokens() < 1 }

// skip leaves out all but the last lines, and those that say why a Go program crashed.
func (s *stderr) skip(b []byte) []byte {
	for _, word := range []string{"panic: ", "fatal error: "} {
		if i := bytes.Index(b, []byte("\n"+word)); i >= 0 {
			line, _, _ := bytes.Cut(b[i+1:], []byte("\n"))
			s.tail.crashed(printable(line[:min(len(line), longestLine)]))
		}
	}
	keep := len(b)
	for range tailLines + 1 {
		i := bytes.LastIndexByte(b[:keep], '\n')
		if i < 0 {
			return b
		}
		keep = i
	}
	s.lost, s.size = s.lost+bytes.Count(b[:keep+1], []byte("\n")), s.size+len(s.line)+s.cut+keep+1
	s.line, s.cut = s.line[:0], 0
	return b[keep+1:]
}

// end ends a line, of which rest is the end.
func (s *stderr) end(rest []byte) {
	room := min(len(rest), longestLine-len(s.line))
	s.line, s.cut = append(s.line, rest[:room]...), s.cut+len(rest)-room
	text := printable(s.line)
	if s.cut > 0 {
		text += "… (" + strconv.Itoa(s.cut) + " bytes more)"
	}
	size := len(s.line) + s.cut
	s.line, s.cut = s.line[:0], 0
	s.tail.add(text)
	now := time.Now()
	if !s.bytes.AllowN(now, min(len(text), bytesAtOnce)) || !s.lines.AllowN(now, 1) {
		s.lost, s.size = s.lost+1, s.size+size+1
	} else if s.copy != nil {
		_, _ = io.WriteString(s.copy, text+"\n")
	}
}

func (s *stderr) tell() {
	s.told = time.Now()
	if s.lost > 0 && s.leftOut != nil {
		s.leftOut(s.lost, s.size)
	}
	s.lost, s.size = 0, 0
}

// printable writes control characters and what is no UTF-8 as Go does, so that nothing moves a
// terminal's cursor or makes two lines of one.
func printable(line []byte) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	clean := true
	for i := 0; i < len(line) && clean; {
		r, n := utf8.DecodeRune(line[i:])
		clean = r == '\t' || strconv.IsPrint(r) && (r != utf8.RuneError || n > 1)
		i += n
	}
	if clean {
		return string(line)
	}
	var out []byte
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRune(line[i:])
		if r == '\t' || strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			out = append(out, line[i:i+n]...)
		} else {
			quoted := strconv.Quote(string(line[i : i+n]))
			out = append(out, quoted[1:len(quoted)-1]...)
		}
		i += n
	}
	return string(out)
}
