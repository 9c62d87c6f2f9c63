package plugintest

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
)

// publishPatience is how long a source may take until it has published what it had then.
const publishPatience = 5 * time.Second

// compare compares all that was said with all that is said now. What differs ends the replay.
func (r *replay) compare() {
	r.now.mu.Lock()
	list := differences(r.said(&r.then, true), r.said(&r.now.world, false))
	clear(r.then.patched)
	clear(r.now.patched)
	r.now.mu.Unlock()
	r.differ("after "+r.led, list)
}

// differ reports differences and ends the replay, if there are any.
func (r *replay) differ(when string, list []string) {
	if len(list) > 0 {
		r.now.failed("%s, the plugin says something else than in the recording:\n  %s", when, strings.Join(list, "\n  "))
		runtime.Goexit()
	}
}

// source waits until a source that publishes by itself says what it said in the end.
func (r *replay) source() {
	if r.ready == nil || r.ready.Derives || !r.ready.Kind.Source() {
		return
	}
	if !r.then.synced {
		r.note("the recording ends before the plugin had its first full list: nothing is compared")
		return
	}
	before := r.rows(&r.then)
	var list []string
	r.now.waitSoftly(publishPatience, func() bool {
		list = differences(before, r.rows(&r.now.world))
		return len(list) == 0
	})
	for i, d := range list {
		list[i] = d + r.last(d)
	}
	r.differ(fmt.Sprintf("%v after its last message", publishPatience), list)
}

// last names the message of the recording that spoke last of the row that a difference is about.
func (r *replay) last(difference string) string {
	for i, m := range slices.Backward(r.messages) {
		var said pb.FromPlugin
		if m.FromCore || said.Unmarshal(m.Frame) != nil || said.Rows == nil {
			continue
		}
		for _, t := range said.Rows.Tables {
			about := func(key string) bool { return strings.HasPrefix(difference, t.Table+" "+key+" ") }
			if slices.ContainsFunc(t.Upserts, func(row *pb.Row) bool { return about(row.Key) }) || slices.ContainsFunc(t.Deletes, about) {
				return fmt.Sprintf(" (message %d, %s, spoke of it last)", i+1, Describe(false, m.Frame))
			}
		}
	}
	return ""
}

// said is all that a plugin has said, by what it is about and not by numbers of its own.
func (r *replay) said(w *world, recorded bool) map[string]string {
	found := r.rows(w)
	body := func(b []byte) string {
		if b != nil && !recorded && recording.Sensitive(r.ready) {
			b = recording.Hash(b)
		}
		return string(b)
	}
	r.eachView(w, func(name string, b []byte) { found[name] = body(b) })
	for connection := range r.then.placed {
		if w.refusal[connection] != "" {
			found[fmt.Sprintf("the refusal of connection %d", connection)] = ""
		}
	}
	for id := range r.then.patched {
		if p := w.patched[id]; p != nil {
			patchSaid(p, fmt.Sprintf("patch %d", id), func(name string, b []byte) { found[name] = body(b) })
		}
	}
	return found
}

// eachView hands over the resources of each view of then, and the view of now that stands for it,
// once.
func (r *replay) eachView(w *world, found func(name string, body []byte)) {
	seen := map[string]bool{}
	for _, connection := range slices.Sorted(maps.Keys(r.then.placed)) {
		for typeURL, view := range r.then.placed[connection] {
			pair := fmt.Sprint(typeURL, " ", view, " ", r.now.placed[connection][typeURL])
			if seen[pair] {
				continue
			}
			seen[pair] = true
			for name, b := range w.resources(w.placed[connection][typeURL]) {
				found(fmt.Sprintf("%s %q of connection %d", last(typeURL), name, connection), b)
			}
		}
	}
}

func patchSaid(p *pb.Patched, patch string, found func(name string, body []byte)) {
	for _, to := range p.Resources {
		found(fmt.Sprintf("%s of %q", patch, to.Name), to.Bytes)
	}
	for _, name := range p.Removes {
		found(fmt.Sprintf("%s that removes %q", patch, name), nil)
	}
	if p.Error != "" {
		found("the error of "+patch, nil)
	}
}

// rows are those that a plugin has published. Of a secret the recording has a hash, which stands
// for what has it.
func (r *replay) rows(w *world) map[string]string {
	found := map[string]string{}
	for table, rows := range w.rows {
		for key, row := range rows {
			if then := r.then.rows[table][key]; then != nil && bytes.Equal(then.Payload, recording.Hash(row.Payload)) {
				masked := *row
				masked.Payload, masked.Annotations = then.Payload, then.Annotations
				row = &masked
			}
			found[table+" "+key] = string(row.AppendTo(nil))
		}
	}
	return found
}
