package readme

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var pair = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S+)`)

// Line is what a line of a text log says, KEY=VALUE …: its msg, and its other fields.
func Line(t testing.TB, line string) (text string, fields map[string]string) {
	t.Helper()
	fields = map[string]string{}
	for _, found := range pair.FindAllStringSubmatch(line, -1) {
		value := found[2]
		if strings.HasPrefix(value, `"`) {
			var err error
			if value, err = strconv.Unquote(value); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		fields[found[1]] = value
	}
	text = fields["msg"]
	delete(fields, "msg")
	return text, fields
}
