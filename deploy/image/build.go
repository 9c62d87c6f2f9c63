package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Where things are in the image, and the user and group that it runs as.
const (
	entry        = "/usr/local/bin/coxswain"
	alias        = "/usr/local/bin/pilot-discovery" // by which istioctl bug-report asks for pages: `pilot-discovery request GET …`
	certificates = "/etc/ssl/certs/ca-certificates.crt"
	zoneinfo     = "/usr/share/zoneinfo.zip"
	documents    = "/usr/share/doc/coxswain"
	user         = "65532:65532"
)

// spec says what an image is made of.
type spec struct {
	programs          []program
	zones, documents  string
	version, revision string
	created           time.Time
}

// program is the file that runs on a platform.
type program struct {
	platform v1.Platform
	file     string
}

// link is the mode of symbolic links.
const link = 0o777

// file of a layer; one whose name ends with a slash is a folder, and a link leads to what its text
// names.
type file struct {
	name string
	mode int64
	text []byte
}

// index is an image for each platform. The lists are what a registry keeps beside each of them: of
// which parts its program is made.
func (s spec) index() (_ v1.ImageIndex, lists []v1.Image, err error) {
	base, err := s.base()
	if err != nil {
		return nil, nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range s.programs {
		image, list, err := s.listed(base, p)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.platform, err)
		}
		lists = append(lists, list)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p.platform}})
	}
	return mutate.Annotations(index, s.labels()).(v1.ImageIndex), lists, nil
}

// listed is the image for a platform, and the list of its program's parts, which names the image as
// its subject.
func (s spec) listed(base v1.Layer, p program) (image, list v1.Image, err error) {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return nil, nil, err
	}
	parts, err := s.parts(text, p.file)
	if err != nil {
		return nil, nil, err
	}
	if image, err = s.image(base, p, text, parts); err != nil {
		return nil, nil, err
	}
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, nil, err
	}
	list = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), spdxType)
	if list, err = mutate.AppendLayers(list, static.NewLayer(parts, spdxType)); err != nil {
		return nil, nil, err
	}
	return image, mutate.Subject(list, *subject).(v1.Image), nil
}

// spdxType is the media type of lists of parts.
const spdxType = types.MediaType("application/spdx+json")

// image for a platform.
func (s spec) image(base v1.Layer, p program, text, parts []byte) (v1.Image, error) {
	own, err := s.layer([]file{
		{path.Join(documents, "sbom.spdx.json"), 0o644, parts}, {entry, 0o755, text}, {alias, link, []byte(path.Base(entry))},
	})
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	at := v1.Time{Time: s.created}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: base, History: v1.History{Created: at, CreatedBy: "certificates of authorities, time zones, documents"}},
		mutate.Addendum{Layer: own, History: v1.History{Created: at, CreatedBy: "coxswain " + s.version}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant, config.Created = p.platform.OS, p.platform.Architecture, p.platform.Variant, at
	config.Config = v1.Config{
		Entrypoint: []string{entry}, Cmd: []string{"discovery"}, User: user, WorkingDir: "/", Labels: s.labels(),
		Env:          []string{"PATH=" + path.Dir(entry), "SSL_CERT_FILE=" + certificates, "ZONEINFO=" + zoneinfo},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "15010/tcp": {}, "15012/tcp": {}, "15014/tcp": {}},
	}
	return mutate.ConfigFile(image, config)
}

// labels by the names of the OCI's image specification, "Annotations".
func (s spec) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "Coxswain",
		"org.opencontainers.image.description": "A control plane for Envoy and every other xDS client",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/coxswain-mesh/coxswain",
		"org.opencontainers.image.version":     s.version,
		"org.opencontainers.image.revision":    s.revision,
		"org.opencontainers.image.created":     s.created.Format(time.RFC3339),
	}
}

// base is what all platforms have.
func (s spec) base() (v1.Layer, error) {
	files := []file{
		{"/tmp/", 0o1777, nil},
		{"/etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")},
		{"/etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{certificates, 0o644, authorities()},
	}
	if s.zones != "" {
		text, err := os.ReadFile(s.zones)
		if err != nil {
			return nil, err
		}
		files = append(files, file{zoneinfo, 0o644, text})
	}
	for _, f := range strings.FieldsFunc(s.documents, func(r rune) bool { return r == ',' }) {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		files = append(files, file{path.Join(documents, filepath.Base(f)), 0o644, text})
	}
	return s.layer(files)
}

// authorities are Mozilla's that hold without conditions, as PEM: what reads a file of them can't
// hold the others to theirs.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}

// layer has these files, and the folders that they are in, all root's and of one time.
func (s spec) layer(files []file) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{}
	for _, f := range files {
		made[strings.Trim(f.name, "/")] = strings.HasSuffix(f.name, "/")
	}
	var whole []file
	for _, f := range files {
		for dir := path.Dir(strings.Trim(f.name, "/")); dir != "."; dir = path.Dir(dir) {
			if !made[dir] {
				made[dir] = true
				whole = append(whole, file{dir + "/", 0o755, nil})
			}
		}
		whole = append(whole, f)
	}
	slices.SortFunc(whole, func(a, b file) int { return strings.Compare(strings.Trim(a.name, "/"), strings.Trim(b.name, "/")) })
	for _, f := range whole {
		h := &tar.Header{
			Name: strings.TrimPrefix(f.name, "/"), Mode: f.mode, Size: int64(len(f.text)), ModTime: s.created,
			Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if f.mode == link {
			h.Typeflag, h.Linkname, h.Size, f.text = tar.TypeSymlink, string(f.text), 0, nil
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
