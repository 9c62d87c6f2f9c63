package secrets

import (
	"strings"
	"testing"
)

// Names that no object can have are refused, with a reason that repeats nothing of a long one.
func TestNamesThatCannotBe(t *testing.T) {
	long := strings.Repeat("y", 3900)
	for _, c := range []struct{ name, why string }{
		{"kubernetes://web", ""},
		{"kubernetes://a.b-c/web", "namespace"},
		{"kubernetes://edge/web.example-1", ""},
		{"kubernetes://" + long[:253], ""},
		{"kubernetes://" + long[:254], "its name has 254 characters, and may have 253"},
		{"kubernetes://" + long, "3900 characters"},
		{"kubernetes://" + long + "-cacert", "3900 characters"},
		{"kubernetes://" + long[:63] + "/web", ""},
		{"kubernetes://" + long[:64] + "/web", "its name has 64 characters, and may have 63"},
		{"kubernetes-gateway://" + long + "/web", "3900 characters"},
		{"configmap://edge/" + long, "3900 characters"},
		{"kubernetes://Web", "DNS subdomain"},
		{"kubernetes://web_1", "DNS subdomain"},
		{"kubernetes://we\nb", "DNS subdomain"},
		{"kubernetes://.web", "DNS subdomain"},
		{"kubernetes://ed_ge/web", "DNS label"},
		{"configmap://Edge/web", "DNS label"},
		{long + "://web", "begin with"},
		{long, "no name of a secret"},
	} {
		_, err := ParseReference(c.name, "edge")
		switch {
		case c.why == "" && err != nil, c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%.40q: %v", c.name, err)
		case err != nil && (len(err.Error()) > 200 || strings.Contains(err.Error(), "\n")):
			t.Errorf("%.40q is refused with %d characters: %.300q", c.name, len(err.Error()), err)
		}
	}
	// The roots of a name that is as long as can be are in the object itself alone.
	r, err := ParseReference("kubernetes://"+long[:250]+RootsSuffix, "edge")
	if all := r.Objects(); err != nil || len(all) != 1 || all[0].Name != long[:250] {
		t.Errorf("%v, %d objects", err, len(r.Objects()))
	}
}
