package host

import (
	"slices"
	"testing"
)

// TestCopiesInArguments: arguments name copies in the place of files, alone, as options and in
// lists; what none names or has beside it is said.
func TestCopiesInArguments(t *testing.T) {
	c := &copies{dir: "/copies", at: map[string]string{
		"/etc/a/main.py": "/copies/0/main.py", "/etc/a/lib/more.py": "/copies/0/lib/more.py", "/etc/b/other": "/copies/1/other", "/etc/c": "/copies/2/c",
	}}
	for _, tt := range []struct{ args, with, unnamed []string }{
		{[]string{"main.py", "-v"}, []string{"/copies/0/main.py", "-v"}, []string{"/etc/b/other", "/etc/c"}},
		{[]string{"--file=/etc/b/other", "/etc/c"}, []string{"--file=/copies/1/other", "/copies/2/c"}, []string{"/etc/a/lib/more.py", "/etc/a/main.py"}},
		{[]string{"x:./main.py:/etc/c", "--o=/etc/b/../b/other"}, []string{"x:/copies/0/main.py:/copies/2/c", "--o=/copies/1/other"}, nil},
	} {
		with, unnamed := c.args(tt.args, "/etc/a")
		slices.Sort(unnamed)
		if !slices.Equal(with, tt.with) || !slices.Equal(unnamed, tt.unnamed) {
			t.Errorf("%v: %v, unnamed %v", tt.args, with, unnamed)
		}
	}
}
