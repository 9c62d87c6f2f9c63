package plugintest

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/wire"
)

// sidecar is the Node of a sidecar.
func sidecar() []byte {
	return wire.String(wire.String(nil, 1, "sidecar~127.0.0.1~plugintest.test~test.svc.cluster.local"), 2, "plugintest.test")
}

func patchCases() []suiteCase {
	return []suiteCase{
		{"nothing to patch", (*kit).nothingToPatch},
		{"hostile resources", (*kit).hostileResources},
		{"calls at once", (*kit).patchesAtOnce},
	}
}

// samples are the suite's resources of a type, or a few small ones: each type of Envoy's has its
// name in field 1.
func (k *kit) samples(r *pb.Ready, typeURL string) []sdk.Resource {
	if given := k.Resources[typeURL]; given != nil {
		return given
	}
	var list []sdk.Resource
	for _, name := range []string{"a", "outbound|80||service.test.svc.cluster.local"} {
		body := wire.String(nil, 1, name)
		if r.Json {
			body = fmt.Appendf(nil, "{%q:%q}", nameField(typeURL), name)
		}
		list = append(list, sdk.Resource{Name: name, Body: body})
	}
	return list
}

func nameField(typeURL string) string {
	if last(typeURL) == "ClusterLoadAssignment" {
		return "clusterName"
	}
	return "name"
}

// patched asks about samples of each type twice.
func (k *kit) patched(h *Harness) map[string]string {
	found := map[string]string{}
	for _, t := range h.Ready().Types {
		given := k.samples(h.Ready(), t.Url)
		first, again := h.Patch(t.Url, nil, given...), h.Patch(t.Url, nil, given...)
		if string(first.AppendTo(nil)[idSize(first.Id):]) != string(again.AppendTo(nil)[idSize(again.Id):]) {
			h.failed("asked twice about the same resources of type %s, the plugin answered differently", last(t.Url))
		}
		if first.Error != "" {
			found[last(t.Url)+" error"] = first.Error
		}
		for _, r := range first.Resources {
			found[last(t.Url)+" "+r.Name] = string(r.Bytes)
		}
		for _, name := range first.Removes {
			found[last(t.Url)+" removed "+name] = ""
		}
	}
	return found
}

func idSize(id uint64) int { return 1 + wire.SizeVarint(id) }

func (k *kit) nothingToPatch() {
	h := k.start()
	for _, t := range h.Ready().Types {
		h.Patch(t.Url, nil)
	}
}

// hostileResources: bytes that can't be read are an error of that call at most.
func (k *kit) hostileResources() {
	h := k.start()
	for _, t := range h.Ready().Types {
		for _, body := range [][]byte{nil, {0xff, 0xff, 0xff}, []byte("{"), []byte(strings.Repeat("[", 100_000))} {
			h.Patch(t.Url, nil, sdk.Resource{Name: "hostile", Body: body})
		}
	}
	k.patched(h)
}

// patchesAtOnce: each of many calls has its own answer.
func (k *kit) patchesAtOnce() {
	h := k.start()
	t := h.Ready().Types[0].Url
	var ids []uint64
	for range 100 {
		id := h.nextID()
		ids = append(ids, id)
		m := &pb.Patch{Id: id, Type: t}
		for _, r := range k.samples(h.Ready(), t) {
			m.Resources = append(m.Resources, &pb.Resource{Name: r.Name, Bytes: r.Body})
		}
		h.send(&pb.FromCore{Patch: m})
	}
	h.wait("100 answers", func() bool {
		for _, id := range ids {
			if h.patched[id] == nil {
				return false
			}
		}
		return true
	})
}

func authenticatorCases() []suiteCase {
	return []suiteCase{
		{"secrets in refusals", (*kit).secretsInRefusals},
		{"calls at once", (*kit).callsAtOnce},
	}
}

// shown are credentials to ask about: the suite's, none, and wrong ones.
func (k *kit) shown() []sdk.Credentials {
	return append([]sdk.Credentials{
		{RemoteAddress: "127.0.0.1:30000"},
		{Headers: map[string]string{"authorization": "Bearer hunter2-hunter2"}, RemoteAddress: "127.0.0.1:30001"},
		{Headers: map[string]string{"authorization": strings.Repeat("x", 60<<10), "clusterid": "\x00\xff"}},
		{Certificates: [][]byte{{1, 2, 3}}, Headers: map[string]string{"x-forwarded-client-cert": "By=;;;,,\"=\\"}},
	}, k.Credentials...)
}

// verdicts asks about each twice.
func (k *kit) verdicts(h *Harness) map[string]string {
	found := map[string]string{}
	for i, c := range k.shown() {
		first, again := h.Authenticate(c), h.Authenticate(c)
		if fmt.Sprint(first.Identities) != fmt.Sprint(again.Identities) {
			h.failed("asked twice about the same credentials, the plugin named other identities")
		}
		found[fmt.Sprintf("verdict %d", i)] = fmt.Sprint(first.Identities)
	}
	for i := range k.Credentials {
		if key := fmt.Sprintf("verdict %d", len(k.shown())-len(k.Credentials)+i); found[key] == "[]" {
			h.failed("the plugin refuses credentials that it should know (%s)", key)
		}
	}
	return found
}

// secretsInRefusals: the caller's secret is not in what the caller, and the log, are told.
func (k *kit) secretsInRefusals() {
	h := k.start()
	c := h.Authenticate(sdk.Credentials{Headers: map[string]string{"authorization": "Bearer hunter2-hunter2"}})
	if strings.Contains(c.Refusal+c.Failure, "hunter2") {
		h.failed("the answer repeats the token")
	}
	if len(c.Identities) > 0 {
		h.failed("a token that nobody issued has the identities %q", c.Identities)
	}
	for _, line := range append(h.Logs(), h.stderr.last()...) {
		if strings.Contains(line, "hunter2") {
			h.failed("the log repeats the token")
		}
	}
}

func (k *kit) callsAtOnce() {
	h := k.start()
	var ids []uint64
	for i := range 200 {
		id := h.nextID()
		ids = append(ids, id)
		h.send(&pb.FromCore{Authenticate: &pb.Authenticate{Id: id, Headers: map[string]string{"authorization": fmt.Sprint("Bearer ", i)}}})
	}
	h.wait("200 answers", func() bool {
		for _, id := range ids {
			if h.callers[id] == nil {
				return false
			}
		}
		return true
	})
}
