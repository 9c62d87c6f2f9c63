package rules

import (
	"regexp"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
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
	}
}

// headerValue checks the format of a value, in which %…% are variables and %% is a percent sign.
// Source: Envoy, HTTP connection manager, custom request/response headers.
func (c *checker) headerValue(at path, value string) {
	for rest := value; rest != ""; {
		before, after, found := strings.Cut(rest, "%")
		if !found {
			break
		}
		end := variableEnd(after)
		if end < 0 {
			c.fail(badHeaderValue, at, "header value configuration %s is invalid: unterminated variable after %s", quote(value), quote(before+"%")).
				hint("write %%%% for a percent sign")
			return
		}
		rest = after[end:]
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		c.fail(badHeaderValue, at, "header value %s must not have line breaks or NUL", quote(value))
	}
}

// variable is what follows a percent sign: another one, or a name with arguments and a length.
var variable = regexp.MustCompile(`^(%|[^%(:]+(\([^)]*\))?(:\d+)?%)`)

// variableEnd returns where a variable ends; negative where it does not.
func variableEnd(text string) int {
	at := variable.FindStringIndex(text)
	if at == nil {
		return -1
	}
	return at[1]
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
