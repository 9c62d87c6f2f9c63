package redact

import "strings"

// words make a name one of a secret, wherever they stand in it. Names are compared in lower case,
// without what separates their words.
var words = []string{
	"password", "passwd", "passphrase", "secret", "token", "credential", "authorization", "apikey", "privatekey", "accesskey",
	"signingkey", "encryptionkey", "sessionticketkey", "contextextensions",
}

// endings make a name one of something about a secret, such as where it is.
var endings = []string{
	"name", "names", "file", "filename", "path", "url", "uri", "endpoint", "ref", "type", "id", "bucket", "header", "headers", "ttl", "expiry", "lifetime",
	"duration", "interval", "timeout", "size", "count", "prefix", "source", "provider", "policy", "mode", "scopes", "pullsecret", "sdsconfig",
}

// numbers are names of numbers of tokens, which are none.
var numbers = []string{"tokenbucket", "tokensper", "maxtokens", "tokenlimit"}

// Name reports whether the name of a field, of a key or of a variable says that what it names is
// secret: password, api_key, clientSecret, x-auth-token and the like, in any case and with any
// separators.
func Name(name string) bool {
	const longest = 256
	if len(name) < len("token") || len(name) > longest {
		return false
	}
	plain := simple(name)
	return contains(plain, words) && !ends(plain) && !contains(plain, numbers)
}

// simple is a name in lower case and without what separates its words.
func simple(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, name)
}

// Telling is Name without exceptions, for what is to be hidden rather than shown, such as values of
// a plugin's own config: a name such as key, auth or dsn is one of a secret there, and so is
// tokenFile.
func Telling(name string) bool {
	plain := simple(name)
	return contains(plain, words) || plain == "key" || plain == "auth" || strings.HasSuffix(plain, "dsn")
}

// Header reports whether a header, or a parameter of a query, has a secret by its name.
func Header(name string) bool {
	return Name(name) || strings.EqualFold(name, "cookie") || strings.EqualFold(name, "set-cookie")
}

func contains(name string, any []string) bool {
	for _, w := range any {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}

func ends(name string) bool {
	for _, e := range endings {
		if strings.HasSuffix(name, e) {
			return true
		}
	}
	return false
}
