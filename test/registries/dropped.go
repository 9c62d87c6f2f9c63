package registries

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// dropAfter is how long rows are served whose server is away.
const dropAfter = 2 * time.Second

// away waits until the plugin's source is as accept says; nil is what is shown of one that is
// there.
func (w *world) away(t *testing.T, what string, accept func(*admin.Away) bool) *admin.Away {
	t.Helper()
	var last *admin.Away
	wait.For(t, what, func() error {
		if last = w.plane.Plugins(t)[entry].Away; !accept(last) {
			return fmt.Errorf("it is shown as %+v (the plugin says sdk.Lost and sdk.Found, doesn't it?)", last)
		}
		return nil
	})
	return last
}

// dropped has the endpoints of a server that is away for too long go, and come back with it.
func (w *world) dropped(t *testing.T) {
	w.edit(t, "    limits: {sync: 20s}\n", "    limits: {sync: 20s}\n    onLoss: {drop-after: "+dropAfter.String()+"}\n")
	w.away(t, "the source is there", func(a *admin.Away) bool { return a == nil })
	w.server.Stop(t)
	a := w.away(t, "the source is away", func(a *admin.Away) bool { return a != nil })
	if got := a.Drops.Sub(a.Since); got != dropAfter {
		t.Errorf("the rows are to go after %v, not %v", got, dropAfter)
	}
	w.client.until(t, "the endpoints went", w.cluster("web", ""))
	if now := time.Now(); now.Before(a.Drops) {
		t.Errorf("the endpoints went %v too early", a.Drops.Sub(now))
	}
	w.away(t, "the rows are dropped", func(a *admin.Away) bool { return a != nil && a.Dropped })
	if out, _ := w.plugin(t, "show", entry); !strings.Contains(out, "its rows went at ") ||
		!strings.Contains(out, "(onLoss): the source is away for longer than onLoss allows (drop-after: 2s)") {
		t.Errorf("plugins show says:\n%s", out)
	}
	text, err := page.Get(w.plane.Monitoring, "/metrics")
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{"coxswain_source_away_seconds", "coxswain_plugin_hidden_rows"} {
		if m := regexp.MustCompile(name + `\{plugin="` + entry + `"\} ([0-9.e+]+)`).FindStringSubmatch(text); m == nil || m[1] == "0" {
			t.Errorf("the metric %s is %v", name, m)
		}
	}
	w.server.Start(w.outer)
	w.server.Put(t, w.all()...)
	w.has(t, "the server is back", "abc")
	w.away(t, "the source is there again", func(a *admin.Away) bool { return a == nil })
}

// edit edits plugins.yaml, and waits until the plugin is swapped for that.
func (w *world) edit(t *testing.T, old, new string) {
	t.Helper()
	text, err := os.ReadFile(w.set)
	if err != nil {
		t.Fatal(err)
	}
	before := w.plane.Plugins(t)[entry].PID
	put(t, w.set, strings.Replace(string(text), old, new, 1))
	wait.For(t, "the plugin is swapped", func() error {
		if p := w.plane.Plugins(t)[entry]; p.PID == before || p.State != "serving" {
			return errors.New(p.State + ", " + p.LastChange)
		}
		return nil
	})
}
