package kubernetes

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

func TestMessage(t *testing.T) {
	bad := kinds.Fault{Field: "spec.hosts[0]", Message: "is no host", Hint: "write one", Code: "COX1", File: "k8s://x"}
	warning := kinds.Fault{Message: "unused", Severity: finding.Warning}
	if got, want := message([]kinds.Fault{warning, bad}, true), "spec.hosts[0]: is no host; write one (COX1); its last good version stays served"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	long := kinds.Fault{Message: strings.Repeat("ä", 2000)}
	for _, list := range [][]kinds.Fault{{long}, {bad, long}, {long, bad, bad}, slicesOf(bad, 500)} {
		got := message(list, false)
		if len(got) > mostMessage || !utf8.ValidString(got) || !strings.HasSuffix(got, "; it is not served until it is mended") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if more := len(list) > 1; more != strings.Contains(got, " more; ") {
			t.Errorf("of %d faults: %q", len(list), got)
		}
	}
}

func slicesOf(f kinds.Fault, n int) (all []kinds.Fault) {
	for range n {
		all = append(all, f)
	}
	return all
}

// TestHeldOnce: the same of the same version is said once; another version, another reason and
// another object of the name are news, and so is what was mended meanwhile.
func TestHeldOnce(t *testing.T) {
	fake := record.NewFakeRecorder(100)
	e := &events{recorder: fake, said: map[key]said{}, refusals: map[key]said{}}
	k := key{kinds.ServiceEntry, "shop/web"}
	held := func(uid types.UID, generation int64, text string) {
		e.held(k,
			&object{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid, Generation: generation}},
			[]kinds.Fault{{Message: text}}, true)
	}
	for i, step := range []func(){
		func() { held("a", 1, "x") }, func() { held("a", 2, "x") }, func() { held("a", 2, "y") }, func() { held("b", 2, "y") },
		func() { e.fine(k); held("b", 2, "y") },
	} {
		step()
		if n := len(fake.Events); n != i+1 {
			t.Errorf("step %d: %d Events", i, n)
		}
	}
	for range 3 {
		held("b", 2, "y")
	}
	if n := len(fake.Events); n != 5 {
		t.Errorf("what was said is said again: %d Events", n)
	}
	if got := <-fake.Events; got != "Warning Held x; its last good version stays served" {
		t.Error(got)
	}
	var none *events
	none.held(k, &object{}, nil, false)
	none.fine(k)
	none.close()
}

// TestEventsOfAServerThatIsAway: it is said once, and nobody waits for it.
func TestEventsOfAServerThatIsAway(t *testing.T) {
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	complaints := make(chan error, 100)
	e := newEvents(t.Context(), client, func(err error) { complaints <- err })
	for i := range 3000 {
		e.held(key{kinds.ServiceEntry, "shop/web"}, &object{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: int64(i)}}, nil, true)
	}
	if err := <-complaints; !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
	e.close()
	if n := len(complaints); n > 0 {
		t.Errorf("%d complaints more", n)
	}
}
