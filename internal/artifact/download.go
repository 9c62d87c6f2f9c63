package artifact

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"

	"github.com/opencontainers/go-digest"
)

// Download returns a module for proxies that a server of HTTP or HTTPS has at a URL: a file that is
// one, packed with gzip or not, or the file plugin.wasm of a tar archive, as agents take them. The
// source's Reference, Key and credentials don't count. The file's own SHA-256 is its digest.
func (s *Store) Download(ctx context.Context, src Source, url string) (*Found, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, src.Timeout, fmt.Errorf("it took longer than pull.timeout, %v", src.Timeout))
	defer cancel()
	found, err := s.download(ctx, src, url)
	if err != nil {
		return nil, plain(ctx, err)
	}
	s.use(found)
	return found, nil
}

func (s *Store) download(ctx context.Context, src Source, url string) (*Found, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "coxswain")
	// Whoever says HTTP gets it; HTTPS never leads to it.
	if src.PlainHTTP = r.URL.Scheme == "http"; r.URL.Host == "" {
		return nil, errors.New("its URL has no host")
	}
	roots, err := src.roots()
	if err != nil {
		return nil, err
	}
	answer, err := src.http(roots).Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %s", url, answer.Status)
	}
	left := int64(src.Bytes)
	from, err := unpacked(answer.Body, &left)
	if err != nil {
		return nil, err
	}
	d, n, err := s.write(from, "", int64(src.Bytes))
	if err != nil {
		return nil, err
	}
	return &Found{Digest: d.String(), Manifest: d.String(), Module: true, Path: s.path(blobs, d.Encoded()), Sum: d.Encoded(), Bytes: n}, nil
}

// magic is how modules begin, in the binary format of WebAssembly.
const magic = "\x00asm"

// unpacked returns the module in what a server says, of which so many bytes may be unpacked.
func unpacked(body io.Reader, left *int64) (io.Reader, error) {
	from := bufio.NewReader(body)
	if begin, _ := from.Peek(2); bytes.Equal(begin, []byte{0x1f, 0x8b}) { // RFC 1952, section 2.3.1
		z, err := gzip.NewReader(from)
		if err != nil {
			return nil, notModule(err)
		}
		from = bufio.NewReader(&bounded{from: z, left: left})
	}
	begin, err := from.Peek(len(magic))
	if string(begin) == magic {
		return from, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	files := tar.NewReader(&bounded{from: from, left: left})
	for range mostFiles {
		h, err := files.Next()
		if err != nil {
			return nil, notModule(err)
		}
		if path.Base(h.Name) != "plugin.wasm" || h.Typeflag != tar.TypeReg {
			continue
		}
		inner := bufio.NewReader(files)
		if begin, _ := inner.Peek(len(magic)); string(begin) != magic {
			return nil, errNoModule
		}
		return inner, nil
	}
	return nil, fmt.Errorf("it lists more than %d files", mostFiles)
}

// notModule is what is wrong with an answer in which no module was found.
func notModule(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrHeader) || errors.Is(err, gzip.ErrHeader) {
		return errNoModule
	}
	return err
}

// Kept returns what the store has of an earlier Download, by its digest; nil: it hasn't got it as
// it was written.
func (s *Store) Kept(d string) *Found {
	of, err := digest.Parse(d)
	if err != nil || !s.has(of) {
		return nil
	}
	found := &Found{Digest: d, Manifest: d, Module: true, Path: s.path(blobs, of.Encoded()), Sum: of.Encoded()}
	s.use(found)
	return found
}
