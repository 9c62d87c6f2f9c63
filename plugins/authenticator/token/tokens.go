package token

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
)

// digest is a token's SHA-256. Digests are compared, not tokens: they have one length, and what a comparison takes says nothing of the token.
type digest [sha256.Size]byte

// entry is one token and whose it is.
type entry struct {
	digest     digest
	identities []string
	line       int
}

// tokens are the entries of a file.
type tokens []entry

// whose returns the identities of a token; nil for one that is unknown. It looks at all entries, whichever fits.
func (t tokens) whose(token string) []string {
	shown := digest(sha256.Sum256([]byte(token)))
	found := -1
	for i := range t {
		equal := subtle.ConstantTimeCompare(shown[:], t[i].digest[:])
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	if found < 0 {
		return nil
	}
	return t[found].identities
}

// equal reports whether two files say the same.
func (t *tokens) equal(u tokens) bool {
	return slices.EqualFunc(*t, u, func(a, b entry) bool { return a.digest == b.digest && slices.Equal(a.identities, b.identities) })
}
