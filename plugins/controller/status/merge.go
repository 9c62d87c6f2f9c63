package status

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
)

// manager is whom the API server names as the writer of what config/kubernetes writes.
const manager = "coxswain"

// wanted is what an object's status is to say.
type wanted struct {
	generation int64
	uid        string
	status     fields
	// controllers are those whose entries these are; none: the status has no entries of
	// controllers.
	controllers []string
}

// entries are lists of a status with an entry for each reference and controller, what the reference
// is called there, and how many entries there may be. Source: Gateway API, RouteStatus.parents,
// PolicyStatus.ancestors.
var entries = []struct {
	field, ref string
	most       int
}{{"parents", "parentRef", 32}, {"ancestors", "ancestorRef", 16}}

// merge returns an object's status with what is wanted in it, and whether that changes it. What
// others say stays as it is: entries of other controllers, and conditions of other types. A
// condition has the time at which it changed last. Source: Gateway API, "Implementer's guide".
func merge(o *object, w *wanted, now time.Time) (status fields, changed bool) {
	status = maps.Clone(o.status)
	if len(w.controllers) == 0 {
		mergeWhole(status, w, now)
		return status, !same(status, o.status)
	}
	for _, e := range entries {
		if want, ok := w.status[e.field]; ok {
			status[e.field] = anyOf(mergeEntries(list(status[e.field]), list(want), e.ref, e.most, w, now))
		}
	}
	return status, !same(status, o.status)
}

// mergeWhole merges a status that is one controller's. An address that was told stays until there
// is another one, as istiod has it.
func mergeWhole(status fields, w *wanted, now time.Time) {
	before := list(status["listeners"])
	for _, field := range []string{"listeners", "attachedListenerSets", "supportedFeatures"} {
		if value, ok := w.status[field]; ok {
			status[field] = value
		} else {
			delete(status, field)
		}
	}
	if value, ok := w.status["addresses"]; ok {
		status["addresses"] = value
	}
	status["conditions"] = anyOf(mergeConditions(list(status["conditions"]), list(w.status["conditions"]), w.generation, now))
	if _, ok := w.status["listeners"]; !ok {
		return
	}
	listeners := list(w.status["listeners"])
	for i, l := range listeners {
		l = maps.Clone(l)
		var had []fields
		if at := slices.IndexFunc(before, func(b fields) bool { return word(b, "name") == word(l, "name") }); at >= 0 {
			had = list(before[at]["conditions"])
		}
		l["conditions"] = anyOf(mergeConditions(had, list(l["conditions"]), w.generation, now))
		listeners[i] = l
	}
	status["listeners"] = anyOf(listeners)
}

// mergeEntries puts our entries where ours with the same reference were, and new ones last.
func mergeEntries(had, want []fields, ref string, most int, w *wanted, now time.Time) []fields {
	ours := func(e fields) bool { return slices.Contains(w.controllers, word(e, "controllerName")) }
	of := func(e fields) func(fields) bool {
		return func(o fields) bool {
			return word(o, "controllerName") == word(e, "controllerName") && same(o[ref], e[ref])
		}
	}
	out, placed := []fields{}, make([]bool, len(want))
	for _, e := range had {
		if !ours(e) {
			out = append(out, e)
			continue
		}
		at := slices.IndexFunc(want, of(e))
		if at < 0 || placed[at] {
			continue // the object has left it
		}
		placed[at] = true
		out = append(out, mergeEntry(e, want[at], w.generation, now))
	}
	for i, e := range want {
		if !placed[i] && len(out) < most { // others' entries count before ours
			out = append(out, mergeEntry(nil, e, w.generation, now))
		}
	}
	return out
}

func mergeEntry(had, want fields, generation int64, now time.Time) fields {
	out := maps.Clone(want)
	out["conditions"] = anyOf(mergeConditions(list(had["conditions"]), list(want["conditions"]), generation, now))
	return out
}

// ourConditions are the types of conditions that may be ours: one that is no longer wanted goes.
var ourConditions = []string{
	"Accepted", "Programmed", "ResolvedRefs", "Conflicted", "InsecureFrontendValidationMode", "SupportedVersion", conditionRefused,
}

// conditionRefused says in the entry of a route that proxies refuse what was made of it.
const conditionRefused = "Refused"

// mergeConditions puts conditions where those of their types were.
func mergeConditions(had, want []fields, generation int64, now time.Time) []fields {
	find := func(in []fields, kind string) int {
		return slices.IndexFunc(in, func(c fields) bool { return word(c, "type") == kind })
	}
	out, placed := []fields{}, map[string]bool{}
	for _, c := range had {
		kind := word(c, "type")
		at := find(want, kind)
		switch {
		case at >= 0 && !placed[kind]:
			placed[kind] = true
			out = append(out, mergeCondition(c, want[at], generation, now))
		case at < 0 && !slices.Contains(ourConditions, kind):
			out = append(out, c)
		}
	}
	for _, c := range want {
		if kind := word(c, "type"); !placed[kind] {
			placed[kind] = true
			out = append(out, mergeCondition(nil, c, generation, now))
		}
	}
	return out
}

// mergeCondition is a condition with the generation that it is about, and the time at which its
// status changed.
func mergeCondition(had, want fields, generation int64, now time.Time) fields {
	out := maps.Clone(want)
	out["observedGeneration"] = json.Number(strconv.FormatInt(generation, 10))
	out["lastTransitionTime"] = now.UTC().Format(time.RFC3339)
	if had != nil && word(had, "status") == word(want, "status") {
		if since := word(had, "lastTransitionTime"); since != "" {
			out["lastTransitionTime"] = since
		}
	}
	return out
}

// istiod is the manager that istiods are. What they were the last to write is theirs, whatever it
// calls its controller.
const istiod = "pilot-discovery"

// strip returns an object's status without what is ours in it: entries of our controllers, and, in
// a status that has no entries, what we were the last to write. The conditions that each Gateway
// and class has say again what they say before any controller has come. Source: Gateway API, the
// defaults of conditions.
func strip(o *object, controllers []string) (status fields, changed bool) {
	status = maps.Clone(o.status)
	hasEntries := false
	for _, e := range entries {
		had, ok := status[e.field]
		if !ok {
			continue
		}
		hasEntries = true
		if o.writtenBy(istiod, "f:"+e.field) {
			continue
		}
		status[e.field] = anyOf(without(list(had), func(f fields) bool { return slices.Contains(controllers, word(f, "controllerName")) }))
	}
	if !hasEntries {
		stripWhole(o, status)
	}
	return status, !same(status, o.status)
}

func stripWhole(o *object, status fields) {
	for _, field := range []string{"addresses", "attachedListenerSets", "supportedFeatures"} {
		if o.owns("f:" + field) {
			delete(status, field)
		}
	}
	if had, ok := status["listeners"]; ok {
		status["listeners"] = anyOf(without(list(had), func(l fields) bool { return o.owns("f:listeners", keyed("name", word(l, "name"))) }))
		if len(list(status["listeners"])) == 0 {
			delete(status, "listeners")
		}
	}
	var left []fields
	for _, c := range list(status["conditions"]) {
		kind := word(c, "type")
		switch {
		case !slices.Contains(ourConditions, kind) || !o.owns("f:conditions", keyed("type", kind)):
			left = append(left, c)
		case kind == "Accepted", kind == "Programmed":
			left = append(left, fields{
				"type": kind, "status": "Unknown", "reason": "Pending", "message": "Waiting for controller", "lastTransitionTime": "1970-01-01T00:00:00Z",
			})
		}
	}
	if _, had := status["conditions"]; had {
		status["conditions"] = anyOf(left)
	}
}
