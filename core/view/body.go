// Package view holds what proxies get: bodies (resources encoded once), sets of them that views
// share, and snapshots of a view at a revision. All of it is immutable, so that what a stream was
// sent is a pointer.
package view

import (
	"cmp"
	"encoding/hex"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Body is one resource, encoded once for both protocols: the state-of-the-world form is the tail of
// the delta form, since field 2 of envoy.service.discovery.v3.Resource and of DiscoveryResponse
// both hold the resource's Any, under the same tag.
type Body struct {
	name, version string
	fragment      []byte
	sotw          int
	// apart is a large value, which the fragment's end announces.
	apart value
}

// large is from which size on a value is not copied.
const large = 32 << 10

// NewBody encodes the bytes of a resource (the value of its Any) of a type. ttl in seconds, 0 for
// none. A large value is kept as it is, and must not be changed any more.
func NewBody(typeURL, name string, bytes []byte, ttl uint32) *Body {
	return newBody(typeURL, name, value{bytes}, ttl)
}

func newBody(typeURL, name string, runs value, ttl uint32) *Body {
	h := xxhash.New()
	_, _ = h.WriteString(typeURL)
	for _, run := range runs {
		_, _ = h.Write(run)
	}
	if ttl > 0 {
		_, _ = h.Write(protowire.AppendVarint(nil, uint64(ttl)))
	}
	version := hex.EncodeToString(h.Sum(nil))

	length := runs.size()
	anySize := 1 + protowire.SizeBytes(len(typeURL))
	if length > 0 {
		anySize += 1 + protowire.SizeBytes(length)
	}
	var life []byte
	if ttl > 0 {
		d := durationpb.Duration{Seconds: int64(ttl)}
		life = protowire.AppendVarint([]byte{0x08}, uint64(d.Seconds))
	}
	apart := length >= large
	size := 1 + protowire.SizeBytes(len(name)) + 1 + protowire.SizeBytes(len(version)) + 1 + protowire.SizeBytes(anySize)
	if ttl > 0 {
		size += 1 + protowire.SizeBytes(len(life))
	}
	room := 1 + protowire.SizeBytes(size)
	if apart {
		room -= length
	}
	f := make([]byte, 0, room)
	f = protowire.AppendVarint(append(f, 0x12), uint64(size)) // DeltaDiscoveryResponse.resources
	f = protowire.AppendString(append(f, 0x1a), name)         // Resource.name
	f = protowire.AppendString(append(f, 0x0a), version)      // Resource.version
	if ttl > 0 {
		f = protowire.AppendBytes(append(f, 0x32), life) // Resource.ttl
	}
	sotw := len(f)
	f = protowire.AppendVarint(append(f, 0x12), uint64(anySize)) // Resource.resource, DiscoveryResponse.resources
	f = protowire.AppendString(append(f, 0x0a), typeURL)         // Any.type_url
	b := &Body{name: name, version: version, sotw: sotw}
	switch {
	case apart:
		f = protowire.AppendVarint(append(f, 0x12), uint64(length)) // Any.value
		b.apart = runs
	case length > 0:
		f = protowire.AppendBytes(append(f, 0x12), runs.joined())
	}
	b.fragment = f
	return b
}

// Name returns the resource's name.
func (b *Body) Name() string { return b.name }

// TypeURL returns the type's URL.
func (b *Body) TypeURL() string {
	if !b.Exists() || b.fragment == nil {
		return ""
	}
	_, n := protowire.ConsumeVarint(b.fragment[b.sotw+1:])
	url, _ := protowire.ConsumeBytes(b.fragment[b.sotw+1+n+1:])
	return string(url)
}

// Version returns the hash of the content, 16 hex characters: the same in every replica and after
// every restart.
func (b *Body) Version() string { return b.version }

// Encoded returns the encoded field `resources` of a DeltaDiscoveryResponse or, not delta, of a
// DiscoveryResponse, its beginning and what follows, one after the other. Read only.
func (b *Body) Encoded(delta bool) (first []byte, rest [][]byte) {
	if delta {
		return b.fragment, b.apart
	}
	return b.fragment[b.sotw:], b.apart
}

// Size returns the number of bytes that Encoded returns.
func (b *Body) Size(delta bool) int {
	first, _ := b.Encoded(delta)
	return len(first) + b.apart.size()
}

// value returns the resource's bytes out of the fragment, or what stands apart.
func (b *Body) value() value {
	if b.apart != nil || !b.Exists() {
		return b.apart
	}
	_, n := protowire.ConsumeVarint(b.fragment[b.sotw+1:])
	a := b.fragment[b.sotw+1+n:]
	_, n = protowire.ConsumeBytes(a[1:])
	if a = a[1+n:]; len(a) == 0 {
		return nil
	}
	v, _ := protowire.ConsumeBytes(a[1:])
	return value{v}
}

// Value returns the resource's bytes: the value of its Any. Read only.
func (b *Body) Value() []byte { return b.value().joined() }

// Same reports whether two are the same version of a resource, or both nil.
func (b *Body) Same(as *Body) bool {
	return b == as || b != nil && as != nil && b.name == as.name && b.version == as.version
}

func compareNames(a, b *Body) int { return cmp.Compare(a.name, b.name) }
