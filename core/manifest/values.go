package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Kind is what a plugin is for, by its word in plugins.yaml.
type Kind string

// Proto returns the kind as the contract numbers it.
func (k Kind) Proto() pb.Kind { return pb.KindOf(string(k)) }

// Words returns the words that there are.
func (Kind) Words() []string { return pb.KindWords() }

// KindOf returns the word for a kind that the contract numbers; none: "".
func KindOf(k pb.Kind) Kind { return Kind(k.Word()) }

// Size is a number of bytes, written 65536, 64Ki, 256Mi or 1Gi (powers of 1024) or 64k, 256M, 1G
// (powers of 1000).
type Size uint64

var (
	sizePattern = regexp.MustCompile(`^([0-9]+)(Ki|Mi|Gi|Ti|k|M|G|T)?$`)
	sizeUnits   = map[string]uint64{
		"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
	}
)

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	m := sizePattern.FindStringSubmatch(string(text))
	if m == nil {
		return fmt.Errorf("want a size such as 65536, 64Ki or 256Mi, not `%s`", text)
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	unit := sizeUnits[m[2]]
	if err != nil || n > (1<<63)/unit || n == 0 {
		return fmt.Errorf("a size of %s is out of range", text)
	}
	*s = Size(n * unit)
	return nil
}

// String returns the size in the largest unit of which it is a whole number.
func (s Size) String() string {
	for _, unit := range []string{"Ti", "Gi", "Mi", "Ki"} {
		if n := sizeUnits[unit]; s > 0 && uint64(s)%n == 0 {
			return strconv.FormatUint(uint64(s)/n, 10) + unit
		}
	}
	return strconv.FormatUint(uint64(s), 10)
}

// Digest is a SHA-256 in 64 lower-case hexadecimal digits.
type Digest string

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// UnmarshalText checks a digest.
func (d *Digest) UnmarshalText(text []byte) error {
	if !digestPattern.Match(text) {
		return fmt.Errorf("a sha256 has 64 hexadecimal digits (0-9a-f), this has %d characters; `sha256sum FILE` prints it", len(text))
	}
	*d = Digest(text)
	return nil
}

// TypeURL names a resource type, by its URL or, in plugins.yaml, its short name.
type TypeURL string

// ShortTypes are short names of resource types.
func ShortTypes() map[string]TypeURL {
	const envoy = "type.googleapis.com/envoy.config."
	return map[string]TypeURL{
		"CDS":  envoy + "cluster.v3.Cluster",
		"EDS":  envoy + "endpoint.v3.ClusterLoadAssignment",
		"LDS":  envoy + "listener.v3.Listener",
		"RDS":  envoy + "route.v3.RouteConfiguration",
		"SDS":  "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
		"ECDS": envoy + "core.v3.TypedExtensionConfig",
		"NDS":  "type.googleapis.com/istio.networking.nds.v1.NameTable",
	}
}

// UnmarshalText reads a type URL or a short name.
func (t *TypeURL) UnmarshalText(text []byte) error {
	short := ShortTypes()
	if url, ok := short[string(text)]; ok {
		*t = url
		return nil
	}
	if !strings.ContainsAny(string(text), "/.") || strings.ContainsAny(string(text), " \t\n") {
		names := make([]string, 0, len(short))
		for name := range short {
			names = append(names, name)
		}
		slices.Sort(names)
		return fmt.Errorf("`%s` is no type URL and none of %s", text, strings.Join(names, ", "))
	}
	*t = TypeURL(text)
	return nil
}

// Share is a part of a whole: 30%, or a number of things.
type Share struct {
	// Percent is 1 to 100, or 0 if Count is given.
	Percent, Count int
}

// UnmarshalText reads a share.
func (s *Share) UnmarshalText(text []byte) error {
	digits, percent := strings.CutSuffix(string(text), "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || percent && n > 100 {
		return fmt.Errorf("want a number from 1 up, or 1%% to 100%%, not `%s`", text)
	}
	if percent {
		*s = Share{Percent: n}
	} else {
		*s = Share{Count: n}
	}
	return nil
}

// Glob is a pattern in which `*` stands for any number of characters, all else for itself. The
// empty glob is one that was not given.
type Glob string

// UnmarshalText checks a glob.
func (g *Glob) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("an empty pattern matches nothing; leave the key out, or write `*`")
	}
	if len(text) > 1024 {
		return errors.New("a pattern has at most 1024 characters")
	}
	*g = Glob(text)
	return nil
}

// Match reports whether the whole of s is what the glob describes.
func (g Glob) Match(s string) bool {
	first, rest, star := strings.Cut(string(g), "*")
	if !star {
		return s == first
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	pieces := strings.Split(rest, "*")
	last := pieces[len(pieces)-1]
	for _, piece := range pieces[:len(pieces)-1] {
		i := strings.Index(s, piece)
		if i < 0 {
			return false
		}
		s = s[i+len(piece):]
	}
	return len(s) >= len(last) && strings.HasSuffix(s, last)
}

// HeaderName is the name of a header, in lower case as HTTP/2 has it.
type HeaderName string

var headerPattern = regexp.MustCompile("^[a-z0-9][a-z0-9_.-]{0,126}$")

// UnmarshalText checks a name. Names that are gRPC's own, and those of binary values, are none that
// a caller can be known by.
func (h *HeaderName) UnmarshalText(text []byte) error {
	name := string(text)
	if !headerPattern.MatchString(name) || strings.HasPrefix(name, "grpc-") || strings.HasSuffix(name, "-bin") {
		return fmt.Errorf("want the name of a header in lower case, such as x-api-key, not `%s`", text)
	}
	*h = HeaderName(name)
	return nil
}

// Kinds returns the words for kinds, sorted.
func Kinds() []string { return slices.Sorted(slices.Values(pb.KindWords())) }
