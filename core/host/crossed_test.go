package host

import "testing"

func TestCrossed(t *testing.T) {
	for text, want := range map[string]string{
		"it published more than 3 rows (limits.rows)":                                        "rows",
		"plugin a did not finish revision 3: it took longer than limits.revision, 5s":        "revision",
		"it had used 64 of the 64 MiB of memory that it may have (wasm.memory)":              "wasm.memory",
		"it used 70.1 MB of memory, more than it may (limits.memory, 64Mi)":                  "memory",
		"no handshake within 1s (limits.start); its last lines of standard error:\n  broken": "start",
		"its process ended by itself; its last lines of standard error:\n  limits.rows":      "",
		"the file limits.yaml is missing":                                                    "",
		"it ended its session":                                                               "",
	} {
		if got := Crossed(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
