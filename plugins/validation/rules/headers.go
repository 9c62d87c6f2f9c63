package rules

import (
	"regexp"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// Codes about HTTP headers.
const (
	badHeaderName  = "COX2017"
	badHeaderValue = "COX2018"
)

// headerName is a token (RFC 9110 5.6.2), which a colon begins in HTTP/2's pseudo headers.
var headerName = regexp.MustCompile("^:?[-!#$%&'*+.^_`|~0-9a-zA-Z]+$")

func (c *checker) headerName(at path, name string) {
	switch {
	case name == "":
		c.fail(badHeaderName, at, "header name cannot be empty")
	case !headerName.MatchString(name):
		c.fail(badHeaderName, at, "header name %s is not a valid header name", quote(name)).hint("use letters, digits and '-'")
	case len(name) > maxHeader:
		c.fail(badHeaderName, at, "header name of %d bytes is longer than %d", len(name), maxHeader)
	}
}

// maxHeader is the most that a header's name or value may have, in bytes.
// Source: envoy.config.core.v3.HeaderValue.
const maxHeader = 16384

// headerValue checks the format of a value, in which %…% are variables and %% is a percent sign.
// Source: Envoy, HTTP connection manager, custom request/response headers.
func (c *checker) headerValue(at path, value string) {
	if err := envoyrules.Format(value); err != nil {
		c.fail(badHeaderValue, at, "header value configuration %s is invalid: %v", quote(value), err).
			hint("name one of Envoy's command operators, with the arguments that it takes; write %%%% for a percent sign")
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		c.fail(badHeaderValue, at, "header value %s must not have line breaks or NUL", quote(value))
	}
	if len(value) > maxHeader {
		c.fail(badHeaderValue, at, "header value of %d bytes is longer than %d", len(value), maxHeader)
	}
}

// headers checks what a route does to headers.
func (c *checker) headers(at path, h *networking.Headers) {
	c.headerOperations(at.field("request"), h.GetRequest())
	c.headerOperations(at.field("response"), h.GetResponse())
}

func (c *checker) headerOperations(at path, ops *networking.Headers_HeaderOperations) {
	c.headerValues(at.field("set"), ops.GetSet())
	c.headerValues(at.field("add"), ops.GetAdd())
	for i, name := range ops.GetRemove() {
		c.headerName(at.field("remove").index(i), name)
	}
}

func (c *checker) headerValues(at path, values map[string]string) {
	for _, name := range sorted(values) {
		c.headerName(at.key(name), name)
		c.headerValue(at.key(name), values[name])
	}
}

// setsAuthority reports whether headers that are set replace the request's host.
func setsAuthority(h *networking.Headers) bool {
	for name := range h.GetRequest().GetSet() {
		if lower := strings.ToLower(name); lower == ":authority" || lower == "host" {
			return true
		}
	}
	return false
}
