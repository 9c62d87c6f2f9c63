package hosts

import (
	"net/netip"
	"strings"
)

// Unix begins the address of a Unix socket in a row: unix:PATH.
const Unix = "unix:"

// IsIP reports whether an address is an IP address.
func IsIP(address string) bool {
	_, err := netip.ParseAddr(address)
	return err == nil
}

// Path returns the path of a Unix socket's address in either form, unix:PATH or unix://PATH.
func Path(address string) (path string, ok bool) {
	path, ok = strings.CutPrefix(address, Unix)
	return strings.TrimPrefix(path, "//"), ok
}

// VirtualAddress returns a service's address in its shortest form: an IP, or a CIDR of more than
// one IP.
func VirtualAddress(s string) (address string, ok bool) {
	if IsIP(s) {
		return s, true
	}
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		return "", false
	}
	if prefix.IsSingleIP() {
		return prefix.Addr().String(), true
	}
	return s, true
}

// IsRange reports whether a service's address is a CIDR.
func IsRange(address string) bool { return strings.Contains(address, "/") }

// ValidName reports whether a host is a DNS name; with wildcard, its first label may be `*`.
func ValidName(host string, wildcard bool) bool {
	if rest, ok := strings.CutPrefix(host, "*."); ok && wildcard {
		host = rest
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > 255 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if !validLabel(label) {
			return false
		}
	}
	return true
}

// IsPartial reports whether a host has a wildcard that stands for a part of a label, such as
// *blob.example.com. Envoy takes it as a domain of requests, and in no TLS hello.
func IsPartial(host string) bool {
	rest, ok := strings.CutPrefix(host, "*")
	return ok && !strings.HasPrefix(rest, ".") && ValidName(strings.TrimPrefix(rest, "-"), false)
}

func validLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
