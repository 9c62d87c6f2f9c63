package mux

import (
	"bytes"
	"io"
	"net"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// kind is what a connection is for.
type kind int

// A connection that ends, or takes too long, before it has said whether it is HTTP/2 is for nobody.
const (
	nobody kind = iota
	grpc
	page
)

// mostOpening is how many bytes of a connection are looked at. Those of HTTP/2 that have not said
// by then what they are for are gRPC's, which has bounds of its own.
const mostOpening = 16 << 10

// opening is the beginning of a connection.
type opening struct {
	conn net.Conn
	is   kind
	// greeted: the client was sent a frame of settings.
	greeted bool
	begun   bytes.Buffer
}

// open reads until it is known what a connection is for.
func open(c net.Conn) *opening {
	o := &opening{conn: c}
	in := io.TeeReader(io.LimitReader(c, mostOpening), &o.begun)
	if o.is = byPreface(in); o.is != grpc {
		return o
	}
	// Clients may wait for the server's settings before they ask for something, as gRPC's do.
	frames := http2.NewFramer(c, in)
	if frames.WriteSettings() != nil {
		o.is = nobody
		return o
	}
	o.greeted = true
	o.is = byRequest(frames)
	return o
}

// byPreface tells HTTP/2, which may be gRPC, from what is for pages.
func byPreface(in io.Reader) kind {
	begin := make([]byte, len(http2.ClientPreface))
	for n := 0; n < len(begin); {
		more, err := in.Read(begin[n:])
		n += more
		switch {
		case !strings.HasPrefix(http2.ClientPreface, string(begin[:n])):
			return page
		case err != nil && n < len(begin):
			return nobody
		}
	}
	return grpc
}

// byRequest reads the headers of the first request. What isn't clearly a page's is gRPC's, also
// what is wrong.
func byRequest(frames *http2.Framer) kind {
	is, said := page, false
	headers := hpack.NewDecoder(4<<10, func(h hpack.HeaderField) {
		if h.Name != "content-type" {
			return
		}
		if said = true; ofGRPC(h.Value) {
			is = grpc
		}
	})
	headers.SetMaxStringLength(mostOpening)
	for {
		f, err := frames.ReadFrame()
		if err != nil {
			return grpc
		}
		var part []byte
		ended := false
		switch f := f.(type) {
		case *http2.HeadersFrame:
			part, ended = f.HeaderBlockFragment(), f.HeadersEnded()
		case *http2.ContinuationFrame:
			part, ended = f.HeaderBlockFragment(), f.HeadersEnded()
		}
		if _, err := headers.Write(part); err != nil {
			return grpc
		}
		if said || ended {
			return is
		}
	}
}

// ofGRPC reports whether a content type is gRPC's: application/grpc, perhaps with a format or
// parameters.
func ofGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(contentType, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}
