package program

import (
	"fmt"
	"testing"
)

// TestReleases: the newest releases come first, as many as are asked for or there are.
func TestReleases(t *testing.T) {
	const two = "# Releases\nv0.1.0 a1\n\nv0.2.0 b2\n# none\n"
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{two, 1, "[{v0.2.0 b2}]"}, {two, 2, "[{v0.2.0 b2} {v0.1.0 a1}]"},
		{two + "v0.3.0 c3", 2, "[{v0.3.0 c3} {v0.2.0 b2}]"}, {"v0.1.0 a1\n", 2, "[{v0.1.0 a1}]"},
		{"# none\n", 2, "[]"}, {"v0.1.0\n", 2, "[]"},
	} {
		got, err := releases(c.text, c.most)
		if fmt.Sprint(got) != c.want || (err != nil) != (c.want == "[]") {
			t.Errorf("%q, %d: %v, %v", c.text, c.most, got, err)
		}
	}
}
