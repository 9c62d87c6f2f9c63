package rules

import (
	"net/netip"
	"strconv"
	"strings"
)

// Codes about names and addresses.
const (
	badHost      = "COX2001"
	badWildcard  = "COX2002"
	badScoped    = "COX2003"
	badReference = "COX2004"
	badExportTo  = "COX2005"
	badAddress   = "COX2013"
)

// Lengths that DNS allows (RFC 1035 2.3.4).
const (
	maxHost  = 255
	maxLabel = 63
)

// isLabel reports whether a text is one label of a DNS name.
func isLabel(s string) bool { return len(s) <= maxLabel && isWord(s, "-", true) }

// isWord reports whether a text begins and ends with a letter or digit and has nothing else but
// those and what inner has; capitals may be letters or not.
func isWord(s, inner string, capitals bool) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || capitals && 'A' <= c && c <= 'Z':
		case i == 0 || i == len(s)-1 || strings.IndexByte(inner, c) < 0:
			return false
		}
	}
	return s != ""
}

func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// hostFault says why a text is no DNS name; empty: it is one. With wildcard, its first label may
// begin with `*`.
func hostFault(host string, wildcard bool) string {
	switch {
	case host == "":
		return "empty domain name not allowed"
	case len(host) > maxHost:
		return "domain name of " + strconv.Itoa(len(host)) + " bytes is too long (at most " + strconv.Itoa(maxHost) + ")"
	case wildcard && host == "*":
		return ""
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if _, err := strconv.Atoi(labels[len(labels)-1]); err == nil && !strings.HasSuffix(host, ".") {
		return "domain name " + quote(host) + " is invalid: its last part must not be a number"
	}
	for i, l := range labels {
		if i == 0 && wildcard {
			rest, wild := strings.CutPrefix(l, "*")
			if wild && rest == "" {
				continue
			}
			if wild {
				l = strings.TrimPrefix(rest, "-")
			}
		}
		if !isLabel(l) {
			return "domain name " + quote(host) + " is invalid: " + quote(labels[i]) + " is no label of a DNS name"
		}
	}
	return ""
}

// quote shows a text, of which there may be too much.
func quote(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return strconv.Quote(s)
}

// isPartial reports whether a wildcard stands for a part of a label, as in *bar.com.
func isPartial(host string) bool {
	return strings.HasPrefix(host, "*") && host != "*" && !strings.HasPrefix(host, "*.")
}

// host checks a name that may have a wildcard in front.
func (c *checker) host(at path, host string) bool {
	why := hostFault(host, true)
	if why != "" {
		c.fail(badHost, at, "%s", why).hint("write a DNS name such as reviews.prod.svc.cluster.local or *.example.com")
	}
	return why == ""
}

// fqdn checks a name without wildcards.
func (c *checker) fqdn(at path, host string) {
	if why := hostFault(host, false); why != "" {
		c.fail(badHost, at, "%s", why).hint("write a DNS name without a wildcard, such as reviews.prod.svc.cluster.local")
	}
}

// nameOrIP checks what may be an IP address or a DNS name.
func (c *checker) nameOrIP(at path, address string) {
	if isIP(address) {
		return
	}
	if why := hostFault(address, false); why != "" {
		c.fail(badAddress, at, "%s is neither an IP address nor a DNS name", quote(address)).hint("leave out ports and schemes")
	}
}

// scoped checks NAMESPACE/HOST as servers of gateways and listeners of sidecars have it.
func (c *checker) scoped(at path, text string, gateway bool) {
	namespace, host, both := strings.Cut(text, "/")
	if !both {
		if !gateway {
			c.fail(badScoped, at, "%s must be of the form namespace/dnsName", quote(text)).hint("write ./%s for this namespace, */%[1]s for all", text)
			return
		}
		namespace, host = "*", text
	}
	switch {
	case namespace == "" || host == "":
		c.fail(badScoped, at, "%s must be of the form namespace/dnsName; neither may be empty", quote(text))
		return
	case namespace == "~" && gateway, !isNamespace(namespace) && (gateway || !isNamespace(strings.TrimPrefix(namespace, "~")) && namespace != "~"):
		c.fail(badScoped, at, "invalid namespace value %s in %s", quote(namespace), quote(text)).hint("write a namespace's name, . for this one or * for all")
	}
	c.scopedHost(at, host, gateway)
}

// isNamespace reports whether a text stands for namespaces.
func isNamespace(s string) bool { return isLabel(s) || s == "*" || s == "." }

func (c *checker) scopedHost(at path, host string, gateway bool) {
	switch {
	case host == "*", gateway && isIP(host):
	case !strings.Contains(host, "."):
		c.fail(badHost, at, "short names (non FQDN) such as %s are not allowed here", quote(host)).hint(
			"write the whole name, such as reviews.prod.svc.cluster.local",
		)
	case c.host(at, host) && isPartial(host):
		c.fail(badWildcard, at, "partial wildcard %s not allowed", quote(host)).hint("a wildcard stands for whole labels: *.example.com")
	}
}

// exportTo checks the namespaces that something is visible in.
func (c *checker) exportTo(at path, list []string, none bool) {
	seen := map[string]bool{}
	for i, each := range list {
		namespace := each
		if each == "." {
			namespace = c.Namespace
		}
		switch {
		case each == "~" && !none:
			c.fail(badExportTo, at.index(i), `"~" (nowhere) is for ServiceEntries alone`)
		case each != "." && each != "*" && each != "~" && !isLabel(each):
			c.fail(badExportTo, at.index(i), "%s is neither a namespace nor one of . and *", quote(each))
		case seen[namespace]:
			c.fail(badExportTo, at.index(i), "duplicate entry: namespace %s is there already", quote(namespace))
		case (each == "*" || each == "~") && len(list) > 1:
			c.fail(badExportTo, at.index(i), "%q cannot be combined with other entries", each)
		}
		seen[namespace] = true
	}
}

// subnet checks an IP address or a CIDR.
func (c *checker) subnet(at path, text string) {
	if isIP(text) {
		return
	}
	if _, err := netip.ParsePrefix(text); err != nil {
		c.fail(badAddress, at, "%s is not a valid IP or CIDR", quote(text)).hint("write such as 10.0.0.1 or 10.0.0.0/16")
	}
}

// socket checks the path of a Unix socket, without its scheme.
func (c *checker) socket(at path, file string) {
	switch {
	case !strings.HasPrefix(file, "/") && !strings.HasPrefix(file, "@"):
		c.fail(badAddress, at, "Unix domain socket must be an absolute path or abstract socket, not %s", quote(file)).hint("write unix:///path or unix://@name")
	case strings.HasSuffix(file, "/"):
		c.fail(badAddress, at, "Unix domain socket %s may not be a directory", quote(file))
	}
}
