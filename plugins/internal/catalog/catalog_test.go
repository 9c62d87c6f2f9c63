package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

func sorted(list []string) string {
	slices.Sort(list)
	return strings.Join(list, " ")
}

func route(name, host string) string {
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata:\n  name: %s\nspec:\n  "+
		"hosts:\n  - %s\n  http: [{route: [{destination: {host: %s}}]}]\n", name, host, host)
}

// offered returns name=host of what contents offer.
func offered(s *contents) string {
	var list []string
	for name, it := range s.items {
		if it.row == nil {
			continue
		}
		vs, err := kinds.Decode[*networking.VirtualService](it.row)
		if err != nil {
			return err.Error()
		}
		list = append(list, strings.TrimPrefix(name.Key, "default/")+"="+vs.Hosts[0])
	}
	return sorted(list)
}

func TestLastGoodVersions(t *testing.T) {
	broken := func(name string) string {
		return strings.Replace(route(name, "new"), "hosts:", "hosts: [", 1)
	}
	const nameless = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: [}\n"
	for _, c := range []struct{ name, before, after, want string }{
		{"by name", "a b", route("b", "new") + "---\n" + broken("a"), "a=old b=new"},
		{"never good", "a", route("a", "new") + "---\n" + broken("b"), "a=new"},
		{"one nameless for one gone", "a b c", route("c", "new") + "---\n" + route("a", "new") + "---\n" + nameless, "a=new b=old c=new"},
		{"nameless at its place", "a b c", nameless + "---\n" + route("c", "new"), "a=old c=new"},
		{"whole file", "a b", "{", "a=old b=old"},
		{"cut", "a b c d", route("a", "new") + "---\n" + route("b", "new")[:60], "a=new b=old c=old d=old"},
		{"cut behind a name", "a b c d", route("a", "new") + "---\n" + broken("b"), "a=new b=old c=old d=old"},
		{"cut to another name", "a bc c d", route("a", "new") + "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata:\n  name: b\nspec: {",
			"a=new bc=old c=old d=old"},
		{"cut, with a new one in front", "a b c", route("x", "new") + "---\n" + route("a", "new") + "---\n" + broken("b"), "a=new b=old c=old x=new"},
		{"gone before a faulty one", "a b c", broken("c"), "c=old"},
		{"gone cleanly", "a b", route("b", "new"), "b=new"},
		{"emptied", "a b", "# nothing\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var texts []string
			for _, name := range strings.Fields(c.before) {
				texts = append(texts, route(name, "old"))
			}
			before := arrange("f", kinds.Read("f", []byte(strings.Join(texts, "---\n"))), nil)
			if got := offered(arrange("f", kinds.Read("f", []byte(c.after)), before)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestResourceTwiceInOneFile(t *testing.T) {
	s := arrange("f", kinds.Read("f", []byte(route("a", "one")+"---\n"+route("a", "two"))), nil)
	if offered(s) != "a=one" || len(s.faults) != 1 || s.faults[0].Place() != "f:10:1" || !strings.Contains(s.faults[0].Message, "f:1:1") {
		t.Errorf("got %s, %v", offered(s), s.faults)
	}
}

// What moves to another file and is broken on the way stays served.
func TestMoveThatBreaks(t *testing.T) {
	c := New()
	c.put("a", arrange("a", kinds.Read("a", []byte(route("x", "one"))), nil))
	c.Changes()
	c.Drop("a")
	c.put("b", arrange("b", kinds.Read("b", []byte(strings.Replace(route("x", "two"), "hosts", "hots", 1))), nil))
	ch := c.Changes()
	if len(ch.Deletes) != 0 || len(ch.Faults.New) != 1 {
		t.Errorf("got %+v", ch)
	}
	c.Drop("b")
	if ch = c.Changes(); len(ch.Deletes[kinds.VirtualService]) != 1 {
		t.Errorf("got %+v", ch)
	}
}

// Documents that an edit moves keep what they say and get new places.
func TestMovedDocuments(t *testing.T) {
	p := parsedFile(t, route("a", "one")+"---\n"+route("b", "one"), nil)
	q := parsedFile(t, "# a comment\n"+route("a", "two")+"---\n"+route("b", "one"), p)
	if got := q.docs[1].Row.Source; got != "f:11:1" {
		t.Errorf("source %s", got)
	}
	if p.docs[1].Row.Source != "f:10:1" {
		t.Error("the row that was given away changed")
	}
}

func parsedFile(t *testing.T, text string, before *Parsed) *Parsed {
	t.Helper()
	p, err := Parse(kinds.Reader{}, "f", []byte(text), before, func(kinds.Document) {})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTooManyDocuments(t *testing.T) {
	_, err := Parse(kinds.Reader{}, "f", []byte(strings.Repeat("---\na: 1\n", maxDocuments+1)), nil, func(kinds.Document) {})
	if err == nil || !strings.Contains(err.Error(), "it has 100001 documents") {
		t.Error(err)
	}
}
