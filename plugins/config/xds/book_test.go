package xds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"
	mcp "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
)

const entries = "networking.istio.io/v1/ServiceEntry"

func pack(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(err)
	}
	return a
}

// object is a resource with a body.
func object(name string, body proto.Message) *anypb.Any {
	m := &mcp.Resource{Metadata: &mcp.Metadata{Name: name}}
	if body != nil {
		m.Body = pack(body)
	}
	return pack(m)
}

func dns(host string) *networking.ServiceEntry {
	return &networking.ServiceEntry{
		Hosts: []string{host}, Resolution: networking.ServiceEntry_DNS, Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}
}

func newBook(t *testing.T, more string) *book {
	t.Helper()
	c, err := parse([]byte(`{"address": "server:1", "types": ["` + entries + `"]` + more + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return newPublication(context.Background(), c, newShard(), validation.New()).books[entries]
}

func answer(version string, resources ...*anypb.Any) *discovery.DiscoveryResponse {
	return &discovery.DiscoveryResponse{TypeUrl: entries, VersionInfo: version, Nonce: "n" + version, Resources: resources}
}

// did is what a reply publishes.
func did(r reply) string {
	var out []string
	for _, row := range r.upserts {
		out = append(out, "+"+row.Key)
	}
	for _, key := range r.deletes {
		out = append(out, "-"+key)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (b *book) shown() string {
	var out []string
	for _, f := range b.wrong() {
		out = append(out, f.Error())
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// An answer is all that there is: what is new comes, what changed changes, what is not named goes,
// and what is the same is not published again.
func TestAnswers(t *testing.T) {
	b := newBook(t, "")
	for _, step := range []struct {
		answer    *discovery.DiscoveryResponse
		published string
	}{
		{answer("1"), ""},
		{answer("2", object("shop/a", dns("a.example")), object("shop/b", dns("b.example"))), "+shop/a +shop/b"},
		{answer("3", object("shop/b", dns("b.example")), object("shop/a", dns("a.example"))), ""},
		{answer("4", object("shop/a", dns("aa.example")), object("shop/b", dns("b.example"))), "+shop/a"},
		{answer("5", object("shop/b", dns("b.example"))), "-shop/a"},
		{answer("6"), "-shop/b"},
	} {
		r := b.handle(step.answer)
		if did(r) != step.published || r.refused != "" || r.version != step.answer.VersionInfo || b.shown() != "" {
			t.Errorf("answer %s: %q, refused %q, version %s, shown %q", step.answer.VersionInfo, did(r), r.refused, r.version, b.shown())
		}
	}
	r := b.handle(answer("7", pack(&mcp.Resource{
		Metadata: &mcp.Metadata{
			Name: "shop/a", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
			CreateTime: timestamppb.New(time.Unix(1700000000, 5)),
		},
		Body: pack(dns("a.example")),
	})))
	row := r.upserts[0]
	if row.Created != 0 || !row.Undated || row.Labels["a"] != "b" || row.Annotations["c"] != "d" ||
		row.Source != "xds://server:1/networking.istio.io/ServiceEntry/shop/a" {
		t.Errorf("%+v", row)
	}
	if spec, err := kinds.Decode[*networking.ServiceEntry](row); err != nil || !proto.Equal(spec, dns("a.example")) {
		t.Error(spec, err)
	}
}

// A mistake spoils its own resource alone, which stays as it was; the answer is refused, and its
// version is not acknowledged.
func TestMistakes(t *testing.T) {
	good := object("shop/good", dns("good.example"))
	for name, c := range map[string]struct {
		bad *anypb.Any
		// says is in the refusal; nameless: it could be any.
		says     string
		nameless bool
	}{
		"no envelope": {pack(dns("a.example")), "resource 1 of the answer is no istio.mcp.v1alpha1.Resource", true},
		"broken envelope": {
			&anypb.Any{TypeUrl: "type.googleapis.com/istio.mcp.v1alpha1.Resource", Value: []byte{0xff, 1, 2}},
			"resource 1 of the answer is no istio", true,
		},
		"no metadata":         {pack(&mcp.Resource{Body: pack(dns("a.example"))}), `"" is no NAMESPACE/NAME`, true},
		"no namespace":        {object("a", dns("a.example")), `"a" is no NAMESPACE/NAME`, true},
		"too many parts":      {object("shop/a/b", dns("a.example")), "is no NAMESPACE/NAME", true},
		"a name that is none": {object("shop/A_B", dns("a.example")), "metadata.name", false},
		"no body":             {object("shop/a", nil), "xds://server:1/networking.istio.io/ServiceEntry/shop/a: ServiceEntry shop/a: body: is missing", false},
		"another kind's body": {object("shop/a", &networking.VirtualService{Hosts: []string{"a"}}), "not a istio.networking.v1alpha3.ServiceEntry", false},
		"a broken body": {pack(&mcp.Resource{
			Metadata: &mcp.Metadata{Name: "shop/a"},
			Body:     &anypb.Any{TypeUrl: "type.googleapis.com/istio.networking.v1alpha3.ServiceEntry", Value: []byte{0x0a, 0x7f}},
		}), "body: can't be read", false},
		"against the schema": {object("shop/a", &networking.ServiceEntry{}), "spec.hosts", false},
		"against the rules": {object("shop/a", &networking.ServiceEntry{
			Hosts: []string{"a.example"}, Resolution: networking.ServiceEntry_STATIC, Ports: dns("").Ports,
			Endpoints: []*networking.WorkloadEntry{{Address: "no address"}},
		}), "spec.endpoints[0].address", false},
		"an unknown enum": {
			object("shop/a", &networking.ServiceEntry{Hosts: []string{"a.example"}, Resolution: 77, Ports: dns("").Ports}),
			"spec.resolution", false,
		},
		"the same twice": {good, "shop/good is in the answer twice", false},
		"a time that is none": {
			pack(&mcp.Resource{Metadata: &mcp.Metadata{Name: "shop/a", CreateTime: &timestamppb.Timestamp{Seconds: 1 << 60}}, Body: pack(dns("a.example"))}),
			"createTime", false,
		},
		"larger than any row": {object("shop/a", large()), "bytes, which is more than", false},
		"text that is no text": {
			object("shop/a", &networking.ServiceEntry{Hosts: []string{"a.example"}, ExportTo: []string{"a\x00b"}, Ports: dns("").Ports, Resolution: 2}),
			"spec.exportTo", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t, "")
			b.handle(answer("1", object("shop/a", dns("a.example")), object("shop/gone", dns("gone.example"))))
			r := b.handle(answer("2", good, c.bad))
			published := "+shop/good -shop/gone"
			if c.nameless {
				published = "+shop/good"
			}
			if !strings.Contains(b.shown(), c.says) {
				t.Errorf("shown: %s", b.shown())
			}
			kept := b.entries["shop/a"]
			if name == "a name that is none" || name == "the same twice" { // then shop/a isn't named
				published, kept = "+shop/good -shop/a -shop/gone", &entry{row: r.upserts[0]}
			}
			if did(r) != published || !strings.Contains(r.refused, c.says) || r.version != "1" || kept == nil || kept.row == nil {
				t.Errorf("%q, refused %q, version %s, kept %v", did(r), r.refused, r.version, kept)
			}
			// It is refused again, and published nothing, when it is said again; and mended by what
			// is right.
			if again := b.handle(answer("3", good, c.bad)); did(again) != "" || again.refused != r.refused || again.sum != r.sum {
				t.Errorf("again: %q %q", did(again), again.refused)
			}
			if mended := b.handle(answer("4", good)); mended.refused != "" || mended.version != "4" || b.shown() != "" {
				t.Errorf("mended: %q %s %s", mended.refused, mended.version, b.shown())
			}
		})
	}
}

func large() *networking.ServiceEntry {
	e := dns("a.example")
	for i := range 60_000 {
		e.SubjectAltNames = append(e.SubjectAltNames, fmt.Sprintf("spiffe://example/%d", i))
	}
	return e
}

// What a later version of the API has is left out, with a warning, and refuses nothing.
func TestUnknownFields(t *testing.T) {
	b := newBook(t, "")
	body := pack(dns("a.example"))
	body.Value = protowire.AppendString(protowire.AppendTag(body.Value, 4000, protowire.BytesType), "later")
	r := b.handle(answer("1", pack(&mcp.Resource{Metadata: &mcp.Metadata{Name: "shop/a"}, Body: body})))
	if did(r) != "+shop/a" || r.refused != "" || !strings.Contains(b.shown(), "warning") || len(r.upserts[0].Payload) != proto.Size(dns("a.example")) {
		t.Errorf("%q %q %s", did(r), r.refused, b.shown())
	}
}

// Bodies of all versions of a kind are read.
func TestVersionsOfBodies(t *testing.T) {
	for _, url := range []string{"istio.networking.v1alpha3.ServiceEntry", "istio.networking.v1beta1.ServiceEntry", "istio.networking.v1.ServiceEntry"} {
		body := pack(dns("a.example"))
		body.TypeUrl = "type.googleapis.com/" + url
		if r := newBook(t, "").handle(answer("1",
			pack(&mcp.Resource{Metadata: &mcp.Metadata{Name: "shop/a"}, Body: body}))); did(r) != "+shop/a" || r.refused != "" {
			t.Errorf("%s: %q %q", url, did(r), r.refused)
		}
	}
}

func TestRevisions(t *testing.T) {
	of := func(revision string) *anypb.Any {
		return pack(&mcp.Resource{Metadata: &mcp.Metadata{Name: "shop/a", Labels: map[string]string{"istio.io/rev": revision}}, Body: pack(dns("a.example"))})
	}
	b := newBook(t, `, "revision": "blue"`)
	for i, c := range []struct{ revision, published string }{{"blue", "+shop/a"}, {"green", "-shop/a"}, {"green", ""}, {"blue", "+shop/a"}} {
		if r := b.handle(answer(fmt.Sprint(i), of(c.revision))); did(r) != c.published || r.refused != "" {
			t.Errorf("%d %s: %q", i, c.revision, did(r))
		}
	}
}

// Entries that stand for services have no endpoints, and count where that is wanted.
func TestSynthetic(t *testing.T) {
	static := &networking.ServiceEntry{Hosts: []string{"web.shop.svc.cluster.local"}, Resolution: networking.ServiceEntry_STATIC, Ports: dns("").Ports}
	with := proto.CloneOf(static)
	with.Endpoints = []*networking.WorkloadEntry{{Address: "10.0.0.1"}}
	all := answer("1", object("shop/synthetic-web", static), object("shop/web", static), object("shop/synthetic-full", with))
	b := newBook(t, "")
	if r := b.handle(all); did(r) != "+shop/synthetic-full +shop/web" || b.stand != 1 {
		t.Errorf("%q, %d", did(r), b.stand)
	}
	if r := newBook(t, `, "synthetic": true`).handle(all); len(r.upserts) != 3 {
		t.Errorf("%q", did(r))
	}
}

// Of more resources than may be, those with the first names count, whatever their order.
func TestLimit(t *testing.T) {
	b := newBook(t, `, "limits": {"resources": 2}`)
	c, a, d := object("shop/c", dns("c.example")), object("shop/a", dns("a.example")), object("shop/d", dns("d.example"))
	if r := b.handle(answer("1", d, c, a)); did(r) != "+shop/a +shop/c" || r.refused != "" || !strings.Contains(b.shown(), "1 resources are left out") {
		t.Errorf("%q %q %s", did(r), r.refused, b.shown())
	}
	if r := b.handle(answer("2", d, a)); did(r) != "+shop/d -shop/c" || b.shown() != "" {
		t.Errorf("%q %s", did(r), b.shown())
	}
}
