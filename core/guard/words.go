package guard

import (
	"fmt"
	"strings"
)

// Plural words a table's or type's name for a number of things: tables of the core have plurals for
// names.
func Plural(noun string, n int) string {
	one := strings.TrimSuffix(noun, "s")
	if n == 1 {
		return one
	}
	return one + "s"
}

// Some are the first of several names.
func Some(names []string) string {
	text := strings.Join(names[:min(len(names), Examples)], ", ")
	if more := len(names) - Examples; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Proxies is a number of proxies in words.
func Proxies(n int) string {
	return fmt.Sprintf("%d %s", n, map[bool]string{true: "proxy", false: "proxies"}[n == 1])
}

// ShortType is the last word of a type's URL.
func ShortType(url string) string { return url[strings.LastIndexAny(url, "./")+1:] }
