package token

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

const (
	// maxFile is the size beyond which a file is refused.
	maxFile = 4 << 20
	// minToken is the length below which a token is too easily guessed.
	minToken = 16
	// maxToken is what fits into a header.
	maxToken = 16 << 10
)

// read returns what a file holds. Errors have the place of the mistake, and no word of what stands
// there.
func read(path string) (tokens, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("tokens cannot be read: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s has %d bytes; the limit is %d", path, info.Size(), maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tokens cannot be read: %w", err)
	}
	t, fault := decode(text)
	if fault != nil {
		return nil, fmt.Errorf("%s:%w", path, fault)
	}
	return t, nil
}

// decode reads the text of a file.
func decode(text []byte) (tokens, error) {
	root, err := document(text)
	if err != nil {
		return nil, err
	}
	fields, err := mapping(root, "the file", "tokens")
	if err != nil {
		return nil, err
	}
	list := fields["tokens"]
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil, wrong(root, "the file must have a list `tokens`; it may be empty: `tokens: []`")
	}
	var all tokens
	lines := map[digest]int{}
	for _, n := range list.Content {
		e, err := decodeEntry(protoyaml.Resolve(n))
		if err != nil {
			return nil, err
		}
		if first, twice := lines[e.digest]; twice {
			return nil, wrong(n, "the same token stands in line %d already", first)
		}
		lines[e.digest] = e.line
		all = append(all, e)
	}
	return all, nil
}

// document returns the root of the text's only document. The parser's own words may have a token in
// them, so they are left out.
func document(text []byte) (*yaml.Node, error) {
	var root *yaml.Node
	for _, chunk := range protoyaml.Split(text) {
		n, fault := chunk.Parse()
		switch {
		case fault != nil:
			return nil, protoyaml.Fault{Line: fault.Line, Column: fault.Column, Reason: "not YAML; is the indentation right, and does a token need quotes?"}
		case n == nil:
		case root != nil:
			return nil, wrong(n, "a second document; the tokens must stand in one")
		default:
			root = n
		}
	}
	if root == nil {
		return nil, protoyaml.Fault{Line: 1, Column: 1, Reason: "the file is empty; write `tokens: []` if there are none"}
	}
	return root, nil
}

// mapping returns the values of a mapping that may have only some keys.
func mapping(n *yaml.Node, what string, keys ...string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, wrong(n, "%s must be a mapping with %s", what, strings.Join(keys, ", "))
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := -1
		for j, k := range keys {
			if key.Kind == yaml.ScalarNode && key.Value == k {
				at = j
			}
		}
		switch {
		case at < 0:
			return nil, wrong(key, "unknown key; %s may have %s", what, strings.Join(keys, ", "))
		case fields[keys[at]] != nil:
			return nil, wrong(key, "%s is given twice", keys[at])
		}
		fields[keys[at]] = protoyaml.Resolve(n.Content[i+1])
	}
	return fields, nil
}

func decodeEntry(n *yaml.Node) (entry, error) {
	fields, err := mapping(n, "an entry", "token", "sha256", "identities", "expires")
	if err != nil {
		return entry{}, err
	}
	e := entry{line: n.Line}
	switch plain, hashed := fields["token"], fields["sha256"]; {
	case (plain == nil) == (hashed == nil):
		return e, wrong(n, "an entry must have either token or sha256")
	case plain != nil:
		e.digest, err = decodeToken(plain)
	default:
		e.digest, err = decodeDigest(hashed)
	}
	if err != nil {
		return e, err
	}
	if at := fields["expires"]; at != nil {
		if e.expires, err = time.Parse(time.RFC3339, at.Value); err != nil || at.Kind != yaml.ScalarNode {
			return e, wrong(at, "expires must be a time such as 2030-01-31T12:00:00Z (RFC 3339)")
		}
	}
	list := fields["identities"]
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return e, wrong(n, "an entry must have a list `identities` that isn't empty")
	}
	for _, i := range list.Content {
		if i = protoyaml.Resolve(i); !isIdentity(i) {
			return e, wrong(i, "an identity must have the form spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT")
		}
		e.identities = append(e.identities, i.Value)
	}
	return e, nil
}

func decodeToken(n *yaml.Node) (digest, error) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag != "!!str":
		return digest{}, wrong(n, "a token must be a string; put it into quotes")
	case len(n.Value) < minToken || len(n.Value) > maxToken:
		return digest{}, wrong(n, "a token must have %d to %d characters; `openssl rand -hex 32` makes one", minToken, maxToken)
	case strings.ContainsFunc(n.Value, func(r rune) bool { return r <= ' ' || r == ',' || r > '~' }):
		return digest{}, wrong(n, "a token must be of printable ASCII, without spaces and commas, to travel in a header")
	}
	return sha256.Sum256([]byte(n.Value)), nil
}

func decodeDigest(n *yaml.Node) (d digest, err error) {
	b, err := hex.DecodeString(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || len(b) != len(d) {
		return d, wrong(n, "sha256 must be %d hexadecimal digits, as `printf %%s TOKEN | sha256sum` prints them", 2*len(d))
	}
	return digest(b), nil
}

func isIdentity(n *yaml.Node) bool {
	_, ok := istio.ParseIdentity(n.Value)
	return ok && n.Kind == yaml.ScalarNode
}

// wrong is a mistake at a node.
func wrong(n *yaml.Node, format string, args ...any) error {
	return protoyaml.Fault{Line: n.Line, Column: n.Column, Reason: fmt.Sprintf(format, args...)}
}
