package budget

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// CheckNode judges what a client says of itself.
func (s *Stream) CheckNode(n *core.Node) error {
	if err := s.name("the node's id", n.GetId()); err != nil {
		return err
	}
	if over(len(n.GetExtensions()), s.Extensions) {
		return exceeds(codes.InvalidArgument, "maxExtensions", s.Extensions,
			fmt.Sprintf("the node lists %d extensions", len(n.Extensions)), "leave out what the proxy doesn't use")
	}
	extensions := 0
	for _, e := range n.GetExtensions() {
		extensions += proto.Size(e) + 4
	}
	if over(extensions, s.ExtensionBytes) {
		return exceeds(codes.InvalidArgument, "maxExtensionBytes", s.ExtensionBytes,
			fmt.Sprintf("the node's extensions have %d bytes", extensions), "leave out what the proxy doesn't use")
	}
	if size := proto.Size(n) - extensions; over(size, s.NodeBytes) {
		return exceeds(codes.InvalidArgument, "maxNodeBytes", s.NodeBytes,
			fmt.Sprintf("the node has %d bytes", size), "shorten its metadata in the proxy's bootstrap")
	}
	return nil
}

// CheckNames judges the names of a request.
func (s *Stream) CheckNames(names []string) error {
	if over(len(names), s.TypeNames) {
		return exceeds(codes.ResourceExhausted, "maxNamesPerType", s.TypeNames, fmt.Sprintf("the request has %d names", len(names)), "ask for less")
	}
	for _, n := range names {
		if err := s.name("a resource name", n); err != nil {
			return err
		}
	}
	return nil
}

// CheckVersions judges the names and versions that a reconnecting client has.
func (s *Stream) CheckVersions(versions map[string]string) error {
	if over(len(versions), s.TypeNames) {
		return exceeds(codes.ResourceExhausted, "maxNamesPerType", s.TypeNames,
			fmt.Sprintf("the request has %d initial resource versions", len(versions)), "ask for less")
	}
	for n, v := range versions {
		if err := s.name("a resource name", n); err != nil {
			return err
		}
		if err := s.name("a resource's version", v); err != nil {
			return err
		}
	}
	return nil
}

// CheckType judges the type of a request.
func (s *Stream) CheckType(url string) error { return s.name("the type URL", url) }

// CheckNonce judges the nonce of a request.
func (s *Stream) CheckNonce(nonce string) error { return s.name("the response nonce", nonce) }

func (s *Stream) name(what, n string) error {
	if over(len(n), s.NameBytes) {
		return exceeds(codes.InvalidArgument, "maxNameBytes", s.NameBytes, fmt.Sprintf("%s has %d bytes: %s", what, len(n), Quote(n)), "shorten it")
	}
	if !plain(n) && (strings.IndexFunc(n, unprintable) >= 0 || !utf8.ValidString(n)) {
		return &Refusal{Limit: "characters", Code: codes.InvalidArgument, Text: fmt.Sprintf("%s has control characters: %s: leave them out", what, Quote(n))}
	}
	return nil
}

// plain reports whether a text is ASCII without control characters, as good as all names are: each
// request of a proxy brings a thousand of them.
func plain(n string) bool {
	for i := range len(n) {
		if n[i] < ' ' || n[i] > '~' {
			return false
		}
	}
	return true
}

func unprintable(r rune) bool { return unicode.IsControl(r) }

// Quote makes one short printable word of what a client said.
func Quote(text string) string {
	const most = 100
	if len(text) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:most], ""))
	}
	return fmt.Sprintf("%q", text)
}

// Line makes one printable line of at most so many bytes of what a client said.
func Line(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return ' '
		}
		return r
	}, text)
}

// What decoded things take in memory, about: Go's headers and pointers beside the bytes.
const (
	ofName  = 32
	ofValue = 160
)

// Weigh returns about how many bytes a node takes in memory: many small values of its metadata take
// much more there than on the wire.
func Weigh(n *core.Node) int {
	size := proto.Size(n) + len(n.GetExtensions())*ofValue
	return size + ofValue*(values(n.GetMetadata())+values(n.GetUserAgentBuildVersion().GetMetadata()))
}

// values counts the values in a struct.
func values(s *structpb.Struct) (n int) {
	for _, v := range s.GetFields() {
		n += valuesOf(v)
	}
	return n
}

func valuesOf(v *structpb.Value) int {
	n := 1 + values(v.GetStructValue())
	for _, e := range v.GetListValue().GetValues() {
		n += valuesOf(e)
	}
	return n
}

// WeighNames returns about how many bytes names with so many bytes of text take.
func WeighNames(names, bytes int) int { return bytes + ofName*names }

// Clip cuts a text after so many bytes, at a rune, and says so.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.Clone(text[:most]) + "…"
}
