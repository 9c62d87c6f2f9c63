package kubernetes

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// TestWhatIsRefused: an object has one text, of so many bytes at most, in the same words whatever
// the order in which it is told.
func TestWhatIsRefused(t *testing.T) {
	b := blames{newer: make(chan struct{}, 1)}
	row := func(resource, reason string, held bool) sdk.Blame {
		return sdk.Blame{
			Table: kinds.ServiceEntry, Key: "shop/web",
			Type: "type.googleapis.com/envoy.config.listener.v3.Listener", Resource: resource, Reason: reason,
			Held: held, Proxies: 1,
		}
	}
	k := key{kinds.ServiceEntry, "shop/web"}
	x, y := row("x", "no lua", true), row("y", "no", false)
	b.rows = []sdk.Blame{y, x}
	want := "proxies refuse Listener x, which was made from it (the others of their namespace that have not accepted it " +
		"have what most had before, new ones too): no lua; and 1 more"
	if got := b.byObject()[k]; got != want {
		t.Errorf("%q", got)
	}
	b.rows = []sdk.Blame{x, y}
	if got := b.byObject()[k]; got != want {
		t.Errorf("%q", got)
	}
	y.Parts = "filter lua of filter chain http"
	b.rows = []sdk.Blame{y}
	want = "proxies refuse filter lua of filter chain http of Listener y, which was made from it (those that refuse it " +
		"have what they accepted before, or nothing): no"
	if got := b.byObject()[k]; got != want {
		t.Errorf("%q", got)
	}
	x.Proxies = 0
	b.rows = []sdk.Blame{x}
	want = "Listener x, which was made from it, is held, as proxies refused it that are gone: others of their namespace have what most had before: no lua"
	if got := b.byObject()[k]; got != want {
		t.Errorf("%q", got)
	}
	b.rows = []sdk.Blame{{Table: kinds.ServiceEntry, Key: "shop/web", Reason: "its namespace is full"}}
	if got := b.byObject()[k]; got != "its namespace is full" {
		t.Errorf("%q", got)
	}
	b.rows = []sdk.Blame{row("x", strings.Repeat("ä", 3000), true)}
	if got := b.byObject()[k]; len(got) > mostMessage || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// TestRefusedOnce: the same of the same version is said once, and where it is over that is said.
func TestRefusedOnce(t *testing.T) {
	fake := record.NewFakeRecorder(100)
	e := &events{recorder: fake, said: map[key]said{}, refusals: map[key]said{}}
	k := key{kinds.ServiceEntry, "shop/web"}
	o := &object{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1}}
	e.refused(k, o, "no")
	e.refused(k, o, "no")
	e.taken(k, o)
	e.refused(k, o, "no")
	close(fake.Events)
	var got []string
	for text := range fake.Events {
		got = append(got, text)
	}
	if want := "[Warning Refused no Normal Taken no proxy refuses what is made from it now Warning Refused no]"; fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
	var none *events
	none.refused(k, o, "no")
	none.taken(k, o)
	var nobody *conditions
	nobody.put(k, "no")
}

// TestCondition: what others wrote into the status stays; what changes nothing is not written.
func TestCondition(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"generation": int64(3)},
		"status":   map[string]any{"observedGeneration": int64(2), "conditions": []any{map[string]any{"type": "Reconciled", "status": "True"}}},
	}}
	first, later := time.Unix(0, 0), time.Unix(60, 0)
	if condition(u, "", first) {
		t.Error("it says that nothing is refused, of what nobody refused")
	}
	if saysRefused(u) {
		t.Error("a status without the condition is read as if it had it")
	}
	for i, step := range []struct {
		text    string
		changes bool
		want    string
	}{
		{"no", true, "True ProxiesRefuse no 1970-01-01T00:00:00Z 3"},
		{"no", false, "True ProxiesRefuse no 1970-01-01T00:00:00Z 3"},
		{"never", true, "True ProxiesRefuse never 1970-01-01T00:00:00Z 3"},
		{"", true, "False Taken no proxy refuses what is made from it 1970-01-01T00:01:00Z 3"},
		{"", false, "False Taken no proxy refuses what is made from it 1970-01-01T00:01:00Z 3"},
	} {
		at := later
		if i == 0 {
			at = first
		}
		if got := condition(u, step.text, at); got != step.changes {
			t.Errorf("step %d: changes %v", i, got)
		}
		if got := saysRefused(u); got != (step.text != "") {
			t.Errorf("step %d: that it is refused is read as %v", i, got)
		}
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		c := list[1].(map[string]any)
		if got := fmt.Sprint(c["status"], " ", c["reason"], " ", c["message"], " ", c["lastTransitionTime"], " ",
			c["observedGeneration"]); got != step.want || len(list) != 2 {
			t.Errorf("step %d: %s", i, got)
		}
	}
	odd := &unstructured.Unstructured{Object: map[string]any{"status": "fine"}}
	if condition(odd, "no", first) {
		t.Error("it is written over a status of another form")
	}
}
