package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// mostFiles bounds how many files a layer lists.
const mostFiles = 20_000

// program sees that the store has the program or module of a manifest, and says in found what it
// is.
func (f *fetcher) program(ctx context.Context, is *content, found *Found) error {
	config, err := f.config(ctx, is)
	if err != nil {
		return err
	}
	switch layered := slices.ContainsFunc(is.Layers, func(d ocispec.Descriptor) bool { return isTar(d.MediaType) }); {
	case layered:
		err = f.fromImage(ctx, is, config, found)
	case len(f.single(is)) == 1:
		d := f.single(is)[0]
		if err = f.blob(ctx, d); err == nil {
			found.Sum, found.Bytes = d.Digest.Encoded(), d.Size
		}
	case f.src.Filter:
		err = fmt.Errorf("it has %d layers, of which none has plugin.wasm", len(is.Layers))
	default:
		err = fmt.Errorf("it has %d layers; a plugin has one, with a module or a program, or is an image whose layers are tar archives", len(is.Layers))
	}
	if err != nil {
		return err
	}
	found.Path = f.store.path(blobs, found.Sum)
	if found.Module, err = isModule(found.Path); err != nil {
		return err
	}
	switch {
	case found.Module:
		return nil
	case f.src.Filter:
		return errNoModule
	}
	if config.OS != "" && (config.OS != runtime.GOOS || config.Architecture != runtime.GOARCH) {
		return fmt.Errorf("it is for %s/%s, and this is %s/%s", config.OS, config.Architecture, runtime.GOOS, runtime.GOARCH)
	}
	return nil
}

var errNoModule = errors.New("it is no WebAssembly module: it doesn't begin as one")

// filterType is the media type of a module for proxies within an artifact that has other layers,
// too. Source: solo-io/wasm, "WebAssembly Artifact Image Specification", "Layers".
const filterType = "application/vnd.module.wasm.content.layer.v1+wasm"

// single are the layers that could be what is looked for by itself.
func (f *fetcher) single(is *content) []ocispec.Descriptor {
	if !f.src.Filter || len(is.Layers) == 1 {
		return is.Layers
	}
	return slices.DeleteFunc(slices.Clone(is.Layers), func(d ocispec.Descriptor) bool {
		return d.MediaType != filterType && d.MediaType != ModuleType
	})
}

// imageConfig is what is needed of an image's configuration, or of an artifact's.
type imageConfig struct {
	Config
	Runs struct{ Entrypoint, Cmd []string } `json:"config"`
}

// config reads a manifest's configuration; one that is not JSON of a known type says nothing.
func (f *fetcher) config(ctx context.Context, is *content) (imageConfig, error) {
	var c imageConfig
	known := []string{ConfigType, ocispec.MediaTypeImageConfig, "application/vnd.docker.container.image.v1+json", "application/vnd.wasm.config.v0+json"}
	if is.Config.Digest == "" || !slices.Contains(known, is.Config.MediaType) {
		return c, nil
	}
	text, err := f.small(ctx, is.Config, mostConfig)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return c, fmt.Errorf("its configuration: %w", err)
	}
	return c, nil
}

func isModule(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	begin := make([]byte, len(magic))
	n, err := io.ReadFull(f, begin)
	if err != nil && n == 0 {
		return false, errors.New("its program is empty")
	}
	return string(begin) == magic, nil
}

func isTar(mediaType string) bool {
	return strings.HasPrefix(mediaType, ocispec.MediaTypeImageLayer) || strings.HasPrefix(mediaType, "application/vnd.docker.image.rootfs.diff.tar")
}

// fromImage takes the one file out of an image's layers that it runs.
func (f *fetcher) fromImage(ctx context.Context, is *content, config imageConfig, found *Found) error {
	name := "/plugin.wasm" // as images of modules for proxies have it
	if command := slices.Concat(config.Runs.Entrypoint, config.Runs.Cmd); len(command) > 0 && !f.src.Filter {
		if !path.IsAbs(command[0]) {
			return fmt.Errorf("its image runs %.80q: give its entrypoint an absolute path", command[0])
		}
		name, found.Args = path.Clean(command[0]), command[1:]
	}
	left := int64(f.src.Bytes)
	for _, d := range slices.Backward(is.Layers) {
		if err := f.blob(ctx, d); err != nil {
			return err
		}
		sum, n, err := f.extract(d, name, &left)
		switch {
		case err != nil:
			return fmt.Errorf("its layer %s: %w", d.Digest, err)
		case sum != "":
			found.Sum, found.Bytes = sum.Encoded(), n
			return nil
		}
	}
	return fmt.Errorf("its image has no file %.80q", name)
}

// extract puts a file of a layer into the store by itself; an empty digest: the layer hasn't got
// it. left is how many bytes may still be unpacked.
func (f *fetcher) extract(d ocispec.Descriptor, name string, left *int64) (digest.Digest, int64, error) {
	layer, err := os.Open(f.store.path(blobs, d.Digest.Encoded()))
	if err != nil {
		return "", 0, err
	}
	defer layer.Close()
	whole := d.Digest.Verifier() // what is read here is what was hashed
	from := &bounded{from: io.TeeReader(layer, whole), left: left}
	var plain io.Reader = from
	switch {
	case strings.HasSuffix(d.MediaType, "gzip"):
		from.left = new(int64)
		*from.left = d.Size
		z, err := gzip.NewReader(from)
		if err != nil {
			return "", 0, err
		}
		plain = &bounded{from: z, left: left}
	case strings.HasSuffix(d.MediaType, "zstd"):
		return "", 0, errors.New("it is packed with zstd; pack it with gzip, or not at all")
	}
	files := tar.NewReader(plain)
	for n := 0; ; n++ {
		h, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return "", 0, rest(plain, from, whole)
		case err != nil:
			return "", 0, err
		case n == mostFiles:
			return "", 0, fmt.Errorf("it lists more than %d files", mostFiles)
		}
		at := path.Clean("/" + h.Name)
		if hidden := path.Join(path.Dir(name), ".wh."+path.Base(name)); at == hidden || at == path.Join(path.Dir(name), ".wh..wh..opq") {
			return "", 0, fmt.Errorf("it takes %.80q away", name)
		}
		if at != name {
			continue
		}
		if h.Typeflag != tar.TypeReg {
			return "", 0, fmt.Errorf("%.80q is no plain file; name the file that it leads to", name)
		}
		sum, size, err := f.store.write(files, "", min(h.Size, *left))
		if err == nil {
			err = rest(plain, from, whole)
		}
		return sum, size, err
	}
}

// rest reads what is left of a layer, and reports, as an error, whether all of it was something
// else than its digest says.
func rest(plain, packed io.Reader, whole digest.Verifier) error {
	for _, r := range []io.Reader{plain, packed} {
		if _, err := io.Copy(io.Discard, r); err != nil {
			return err
		}
	}
	if !whole.Verified() {
		return errors.New("it is not what its digest says any more")
	}
	return nil
}

// bounded reads as much as may be unpacked.
type bounded struct {
	from io.Reader
	left *int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if *b.left -= int64(n); *b.left < 0 {
		return 0, errors.New("it is unpacked to more than pull.bytes allows")
	}
	return n, err
}

// reader returns a reader of a text.
func reader(text []byte) io.Reader { return bytes.NewReader(text) }
