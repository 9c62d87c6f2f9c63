package protoyaml

import "bytes"

// Chunk is the text of one document of a stream.
type Chunk struct {
	// Before is the number of lines in front of it.
	Before int
	Text   []byte
}

// Split cuts a stream at its document markers, so that a document that cannot be parsed spoils no
// other. YAML forbids such lines inside of scalars, so that cutting needs no parser.
func Split(stream []byte) []Chunk {
	var chunks []Chunk
	start, startLine, blank, directive := 0, 0, true, false
	line := 0
	cut := func(end, nextLine int) {
		if !blank {
			chunks = append(chunks, Chunk{startLine, stream[start:end]})
		}
		start, startLine, blank, directive = end, nextLine, true, false
	}
	for at := 0; at < len(stream); line++ {
		next := endOfLine(stream, at)
		text := stream[at:next]
		switch {
		case isMarker(text, "---"):
			if !directive {
				cut(at, line)
			}
			blank, directive = isBlank(text[3:]), false
		case isMarker(text, "..."):
			cut(next, line+1)
		case blank && text[0] == '%':
			directive = true
		case !isBlank(text):
			blank = false
		}
		at = next
	}
	cut(len(stream), line)
	return chunks
}

// endOfLine returns the offset behind the line that begins at an offset.
func endOfLine(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// isMarker reports whether a line begins with a marker that stands alone.
func isMarker(line []byte, marker string) bool {
	if !bytes.HasPrefix(line, []byte(marker)) {
		return false
	}
	rest := line[len(marker):]
	return len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' || rest[0] == '\n'
}

// isBlank reports whether a line says nothing: space or a comment.
func isBlank(line []byte) bool {
	rest := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
	return len(rest) == 0 || rest[0] == '#'
}
