// Package usable knows which key sets (RFC 7517) Envoy takes. One that it doesn't take has the
// whole listener refused, and with it each policy that came in it. And it has the set that stands
// in where there is none: Nobodys.
//
// It is apart from package keysets, because generators need it and fetch nothing.
package usable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// MaxBytes is how large a set may be: less than a row may hold (sdk, 1 MiB less a frame), with
	// room for the row's key.
	MaxBytes = 7 << 17
	// maxDepth is how deep a set may be nested: a key's values are at the third level. Envoy's
	// reader ends at about a hundred.
	maxDepth = 32
)

var errNone = errors.New("it has no key that a signature can be checked with (RSA of 512 to 8192 bits, EC, Ed25519 or oct)")

// Check reports why Envoy would not take a key set: it must be JSON with a list `keys`, at least
// one of which is usable, or an object of certificates in PEM with RSA keys, by their key ids.
// Source: envoy.extensions.filters.http.jwt_authn.v3.JwtProvider.local_jwks; Envoy,
// source/common/jwt/jwks.cc.
func Check(text string) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("it has %d bytes; %d are taken", len(text), MaxBytes)
	}
	if err := shallow(text); err != nil {
		return err
	}
	set := &structpb.Struct{}
	if err := protojson.Unmarshal([]byte(text), set); err != nil {
		return fmt.Errorf("it is no JSON object: %w", errors.Unwrap(err))
	}
	list, ok := set.Fields["keys"]
	if !ok {
		return certificates(set.Fields)
	}
	if _, ok := list.GetKind().(*structpb.Value_ListValue); !ok {
		return errors.New("`keys` is no list")
	}
	for _, each := range list.GetListValue().GetValues() {
		if k := each.GetStructValue(); k != nil && key(k.Fields).usable() {
			return nil
		}
	}
	return errNone
}

// shallow reports as an error that text is no JSON, or nested too deep.
func shallow(text string) error {
	d, depth := json.NewDecoder(strings.NewReader(text)), 0
	for d.More() || depth > 0 {
		token, err := d.Token()
		if err != nil {
			return fmt.Errorf("it is no JSON: %w", err)
		}
		if delim, ok := token.(json.Delim); ok {
			if bytes.ContainsRune([]byte("[{"), rune(delim)) {
				depth++
			} else {
				depth--
			}
		}
		if depth > maxDepth {
			return fmt.Errorf("it is nested more than %d levels deep", maxDepth)
		}
	}
	return nil
}
