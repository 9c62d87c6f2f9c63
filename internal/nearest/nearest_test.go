package nearest

import "testing"

func TestName(t *testing.T) {
	right := []string{"services", "endpoints", "name", "x"}
	for wrong, want := range map[string]string{
		"sevices": "services", "SERVICES": "services", "endpoint": "endpoints", "nmae": "name", "nam": "name", "y": "", "table": "", "": "",
	} {
		if got := Name(wrong, right); got != want {
			t.Errorf("%q: %q, want %q", wrong, got, want)
		}
	}
}

func TestSuggest(t *testing.T) {
	for _, c := range []struct {
		wrong string
		right []string
		want  string
	}{
		{"nmae", []string{"name", "age"}, `; did you mean "name"?`},
		{"table", []string{"b", "a"}, "; known are a, b"},
		{"table", nil, ""},
	} {
		if got := Suggest(c.wrong, c.right); got != c.want {
			t.Errorf("%q: %q, want %q", c.wrong, got, c.want)
		}
	}
}
