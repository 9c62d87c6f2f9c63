package xds

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// book is what the server has said of one type. It is told of each answer and says what to publish,
// and what to reply.
type book struct {
	reader
	revision  string
	synthetic bool
	most      int

	// answered: it was, once.
	answered bool
	// version is that of the last answer that was taken whole.
	version string
	entries map[string]*entry
	// faults are of resources without a name, left how many are beyond the limit, and stand how
	// many stand for services and are left out.
	faults []kinds.Fault
	left   int
	stand  int
}

// entry is what is known of a resource.
type entry struct {
	sum [sha256.Size]byte
	// row is the last good one; nil: there is none.
	row *sdk.Row
	// faults are what is wrong with its present content.
	faults []kinds.Fault
}

// reply is what comes of an answer.
type reply struct {
	upserts []*sdk.Row
	deletes []string
	// version is what is acknowledged. Where refused says why, it is the one before.
	version string
	refused string
	// sum tells answers with other resources apart.
	sum [sha256.Size]byte
}

// handle takes an answer: all that there is of the type. Resources that are faulty stay as they
// were, whatever is wrong with them, and the answer is refused; all others count. A resource that
// isn't named any more is gone, unless one of the answer's could be it: one without a name that can
// be read.
func (b *book) handle(m *discovery.DiscoveryResponse) reply {
	var r reply
	b.answered, b.faults, b.left, b.stand = true, nil, 0, 0
	all, nameless := b.open(m, &r)
	now := make(map[string]bool, len(all))
	for _, s := range all {
		now[s.name] = true
	}
	if !nameless {
		for name, e := range b.entries {
			if !now[name] {
				b.drop(name, e, &r)
			}
		}
	}
	for _, s := range all {
		b.put(s, &r)
	}
	if r.refused = b.refusal(); r.refused == "" {
		b.version = m.VersionInfo
	}
	r.version = b.version
	return r
}

// open reads the names of an answer's resources, each once, and leaves out those beyond the limit.
// nameless: there are some whose names can't be read.
func (b *book) open(m *discovery.DiscoveryResponse, r *reply) (all []said, nameless bool) {
	sum := sha256.New()
	seen := make(map[string]bool, len(m.Resources))
	for i, a := range m.Resources {
		s, err := open(a, b.cluster)
		sum.Write([]byte(s.name + "\x00"))
		sum.Write(s.sum[:])
		switch {
		case err != nil:
			nameless = nameless || !errors.Is(err, errNobody)
			b.fault(kinds.CodeObject, "resource %d of the answer %v", i, err)
		case seen[s.name]:
			b.fault(kinds.CodeRival, "%s is in the answer twice; the first one counts", s.name)
		default:
			seen[s.name] = true
			all = append(all, s)
		}
	}
	sum.Sum(r.sum[:0])
	if len(all) > b.most {
		slices.SortFunc(all, func(x, y said) int { return cmp.Compare(x.name, y.name) })
		b.left, all = len(all)-b.most, all[:b.most]
	}
	return all, nameless
}

func (b *book) fault(code, format string, args ...any) {
	if len(b.faults) < mostFaults {
		b.faults = append(b.faults, kinds.Fault{File: b.place(""), Kind: b.kind.Name(), Code: code, Message: fmt.Sprintf(format, args...)})
	}
}

// put takes a resource's content.
func (b *book) put(s said, r *reply) {
	e := b.entries[s.name]
	if e == nil {
		if len(b.entries) >= b.most { // of those before, too, where nobody knows which are gone
			b.left++
			return
		}
		e = &entry{}
		b.entries[s.name] = e
	}
	switch {
	case !b.concerns(s.resource.Metadata.Labels):
		b.clear(e, r)
		return
	case !b.synthetic && b.standsFor(s):
		b.stand++
		b.clear(e, r)
		return
	case e.sum == s.sum:
		return // as it was
	}
	row, faults := b.row(s)
	e.sum, e.faults = s.sum, faults
	if row == nil || e.row != nil && equal(e.row, row) {
		return
	}
	e.row = row
	r.upserts = append(r.upserts, row)
}

// clear has an entry be of no row.
func (b *book) clear(e *entry, r *reply) {
	if e.row != nil {
		r.deletes = append(r.deletes, e.row.Key)
	}
	*e = entry{}
}

func (b *book) drop(name string, e *entry, r *reply) {
	b.clear(e, r)
	delete(b.entries, name)
}

// concerns reports whether a resource with these labels is of this revision.
// Source: Istio, "Canary upgrades": the label istio.io/rev.
func (b *book) concerns(labels map[string]string) bool {
	revision, given := labels["istio.io/rev"]
	return !given || b.revision == "" || revision == b.revision
}

// standsFor reports whether an entry stands for a service of the server's own registries: it has
// its name and no endpoints, which are asked for by EDS.
func (b *book) standsFor(s said) bool {
	_, name := kinds.SplitKey(s.name)
	if b.kind.Table != kinds.ServiceEntry || !strings.HasPrefix(name, "synthetic-") {
		return false
	}
	spec, _, err := b.spec(s.resource.GetBody())
	service, ok := spec.(*networking.ServiceEntry)
	return err == nil && ok && len(service.Endpoints) == 0
}

func equal(a, b *sdk.Row) bool {
	return a.Created == b.Created && a.Undated == b.Undated && bytes.Equal(a.Payload, b.Payload) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// mostTold is how many faults a refusal tells.
const mostTold = 5

// refusal says what is wrong with what the server says now; empty: nothing.
func (b *book) refusal() string {
	var told []string
	n := 0
	tell := func(list []kinds.Fault) {
		for _, f := range list {
			if kinds.Refuses([]kinds.Fault{f}) {
				if n++; n <= mostTold {
					told = append(told, f.Error())
				}
			}
		}
	}
	tell(b.faults)
	var faulty []string
	for name, e := range b.entries {
		if len(e.faults) > 0 {
			faulty = append(faulty, name)
		}
	}
	slices.Sort(faulty)
	for _, name := range faulty {
		tell(b.entries[name].faults)
	}
	if n > mostTold {
		told = append(told, fmt.Sprintf("%d more", n-mostTold))
	}
	return strings.Join(told, "; ")
}

// wrong are all faults of the type.
func (b *book) wrong() []kinds.Fault {
	all := slices.Clone(b.faults)
	for _, e := range b.entries {
		all = append(all, e.faults...)
	}
	if b.left > 0 {
		all = append(all, kinds.Fault{
			File: b.place(""), Kind: b.kind.Name(), Message: fmt.Sprintf("%d resources are left out: there are more than limits.resources, %d", b.left, b.most),
		})
	}
	return all
}
