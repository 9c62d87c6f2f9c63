package zookeeper

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// offer is what a provider offers at one port, whatever said so. The fields of a key that is an
// application's are its name alone.
type offer struct {
	// of says where it stands, for people.
	of          string
	service     igv
	application bool
	protocol    string
	address     string
	port        uint32
	parameters  map[string]string
	// owner is the application, where that is known.
	owner string
	// stamp is when it came, in milliseconds: of two at one place the newer one counts. An
	// interface's goes before an application's.
	stamp    int64
	byName   bool
	disabled bool
}

// readProvider reads the name of a node below /dubbo/INTERFACE/providers, a URL that is escaped as
// one. Source: Dubbo, "Zookeeper Registry"; "dubbo:service", URL parameters.
func readProvider(name string) (*offer, error) {
	text, err := unescape(name)
	if err != nil {
		return nil, err
	}
	at, parameters, err := readURL(text)
	if err != nil {
		return nil, err
	}
	o := &offer{
		protocol: at.protocol, address: at.host, port: at.port, parameters: parameters, owner: parameters["application"], byName: true,
		service: newIGV(or(parameters["interface"], at.path), parameters["group"], parameters["version"]),
	}
	if o.service.name == "" {
		return nil, strict.Errorf("interface", "is missing")
	}
	return o, o.common()
}

// unescape reads a name that is an escaped URL.
func unescape(name string) (string, error) {
	text, err := url.QueryUnescape(name)
	switch {
	case err != nil:
		return "", strict.Errorf("", "is no escaped URL")
	case !utf8.ValidString(text):
		return "", strict.Errorf("", "is no UTF-8")
	}
	return text, nil
}

// speaks is the protocol that the provider would be spoken to by, of those that it speaks at its
// port.
func (o *offer) speaks() string {
	return or(strings.ToLower(o.parameters["prefer.protocol"]), o.protocol)
}

// common reads parameters that all sorts of offers have.
func (o *offer) common() error {
	p := o.parameters
	if text := p["timestamp"]; text != "" {
		o.stamp, _ = strconv.ParseInt(text, 10, 64)
	}
	var err error
	if o.disabled, err = yes(p["disabled"]); err != nil {
		return strict.Errorf("disabled", "%v", err)
	}
	if text := p["enabled"]; text != "" && !o.disabled {
		enabled, err := yes(text)
		if err != nil {
			return strict.Errorf("enabled", "%v", err)
		}
		o.disabled = !enabled
	}
	if _, err := readWeight(p["weight"]); err != nil {
		return strict.Errorf("weight", "%v", err)
	}
	return nil
}

// usual is the weight of providers that say none.
// Source: Dubbo, "dubbo:provider", weight.
const usual = 100

// mostWeight is more than Dubbo's own console sets, and so little that a locality of 4,000 such
// endpoints is one that Envoy takes.
const mostWeight = 1_000_000

// readWeight reads a weight; what is negative is 0.
func readWeight(text string) (uint32, error) {
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no weight", clip(text))
	}
	return uint32(min(max(n, 0), mostWeight)), nil
}

func yes(text string) (bool, error) {
	switch text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", clip(text))
}

// place is the beginning of a URL.
type place struct {
	protocol, host, path string
	port                 uint32
}

// readURL reads PROTOCOL://[USER[:PASSWORD]@]HOST[:PORT][/PATH][?NAME=VALUE&…]. Values are not
// escaped once more; of a name that is there twice the last value counts, as in Dubbo. Errors don't
// repeat user and password.
func readURL(text string) (at place, parameters map[string]string, err error) {
	text, query, _ := strings.Cut(text, "?")
	protocol, rest, ok := strings.Cut(text, "://")
	if !ok || protocol == "" {
		return at, nil, strict.Errorf("", "is no URL")
	}
	rest, at.path, _ = strings.Cut(rest, "/")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	at.protocol, at.host = strings.ToLower(protocol), rest
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && !strings.HasSuffix(rest, "]") {
		n, err := strconv.ParseUint(rest[i+1:], 10, 16)
		if err != nil {
			return at, nil, strict.Errorf("", "%q is no port", clip(rest[i+1:]))
		}
		at.host, at.port = rest[:i], uint32(n)
	}
	at.host = strings.TrimSuffix(strings.TrimPrefix(at.host, "["), "]")
	if ip := net.ParseIP(at.host); ip != nil {
		at.host = ip.String()
	}
	parameters = map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); name != "" {
			parameters[name] = value
		}
	}
	return at, parameters, nil
}
