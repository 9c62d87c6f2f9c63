package kinds

import (
	"strings"
	"testing"
)

func TestObjectsDoNotSayHowOldTheyAre(t *testing.T) {
	text := strings.Join([]string{"evil", "demo", "other"}, "\n")
	var objects []string
	for _, namespace := range strings.Fields(text) {
		objects = append(objects, "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: "+namespace+
			", creationTimestamp: \"2020-01-01T00:00:00Z\"}\nspec: {hosts: [a], http: [{route: [{destination: {host: a}}]}]}\n")
	}
	content := []byte(strings.Join(objects, "---\n"))
	for i, d := range (Reader{Order: Ordering{Rank: []string{"demo", "evil"}}.Order()}).Read("f", content) {
		if want := []int64{-1, -2, 0}[i]; !d.Row.Undated || d.Row.Created != want {
			t.Errorf("%s: %v %d", d.Namespace, d.Row.Undated, d.Row.Created)
		}
	}
	for _, d := range (Reader{Order: Ordering{Trust: true}.Order()}).Read("f", content) {
		if d.Row.Undated || d.Row.Created == 0 {
			t.Errorf("%s: %v %d", d.Namespace, d.Row.Undated, d.Row.Created)
		}
	}
}

func TestOrderingIsChecked(t *testing.T) {
	for _, c := range []struct {
		Ordering
		want string
	}{
		{Ordering{Rank: []string{"a", "b"}}, ""},
		{Ordering{Trust: true}, ""},
		{Ordering{Rank: []string{"a"}, Trust: true}, "leave one of them out"},
		{Ordering{Rank: []string{"a", "A"}}, "no namespace's name"},
		{Ordering{Rank: []string{"a", "a"}}, "there already"},
		{Ordering{Rank: make([]string, maxRank+1)}, "at most"},
	} {
		if err := c.Check(); err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v", c.Ordering, err)
		}
	}
}
