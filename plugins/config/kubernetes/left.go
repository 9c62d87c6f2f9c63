package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
)

const (
	// leftOutEvery is how often it is looked which objects of the cluster nobody serves.
	// leftOutAgain is when it is looked again where the API server could not be asked.
	leftOutEvery = 5 * time.Minute
	leftOutAgain = 15 * time.Second
	// mostLeftOut is how many objects of a kind are counted.
	mostLeftOut = 500
)

// leftOut looks for objects of the cluster that istiod would heed and nobody serves here.
type leftOut struct {
	server *server
	config Config
	log    func(level sdk.Level, text string, args ...any)
	// found are the faults that were found last, one for each kind; newer: there are others.
	found chan []kinds.Fault
	// unread are the kinds of which it was said that they can't be read.
	unread map[string]bool
}

func newLeftOut(s *server, c Config, log func(sdk.Level, string, ...any)) *leftOut {
	return &leftOut{server: s, config: c, log: log, found: make(chan []kinds.Fault), unread: map[string]bool{}}
}

// run looks again and again until ctx ends.
func (l *leftOut) run(ctx context.Context) {
	next := time.Duration(0)
	for {
		wait := time.NewTimer(next)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		found, err := l.look(ctx)
		if next = leftOutEvery; err != nil {
			next = leftOutAgain // what was found before stays
			continue
		}
		select {
		case <-ctx.Done():
			return
		case l.found <- found:
		}
	}
}

// look asks the API server once. What this account may not read is passed over, once with a line.
func (l *leftOut) look(ctx context.Context) (found []kinds.Fault, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	versions, err := l.groups(ctx)
	if err != nil {
		return nil, err
	}
	of := map[schema.GroupVersion][]metav1.APIResource{}
	for _, in := range kinds.InClusters() {
		at, ok := versions[in.Group]
		if !ok {
			continue
		}
		if _, known := of[at]; !known {
			if of[at], err = l.resources(ctx, at); err != nil {
				return nil, err
			}
		}
		for _, r := range of[at] {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") ||
				len(in.Kinds) > 0 && !slices.Contains(in.Kinds, r.Kind) || reads(at.Group, r.Kind) {
				continue
			}
			names, why, err := l.objects(ctx, at.WithResource(r.Name), in.Labels, unserved)
			if err != nil {
				return nil, err
			}
			if f, any := counted(at.Group, r.Kind, names, why); any {
				found = append(found, f)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b kinds.Fault) int { return cmp.Compare(a.File, b.File) })
	found = slices.CompactFunc(found, func(a, b kinds.Fault) bool { return a.File == b.File })
	asking, why, err := l.uninjected(ctx)
	if err != nil {
		return nil, err
	}
	if f, any := counted("", "Namespace", asking, why); any {
		found = append(found, f)
	}
	return found, nil
}

// Labels by which namespaces ask for proxies in their pods. Source: Istio, "Installing the
// Sidecar".
const (
	injectionLabel = "istio-injection"
	revisionLabel  = "istio.io/rev"
)

// uninjected are the namespaces that ask this control plane for proxies in their pods where it
// puts them into none, and what is said of them.
func (l *leftOut) uninjected(ctx context.Context) (names []string, why string, err error) {
	if l.config.Uninjected == "" {
		return nil, "", nil
	}
	unless := "," + injectionLabel + "!=disabled"
	selectors := []string{revisionLabel + "=" + l.config.Revision + unless}
	if l.config.Revision == "" || l.config.Revision == "default" {
		selectors = []string{injectionLabel + "=enabled", revisionLabel + unless}
	}
	why = "its pods get no proxy of this control plane: " + l.config.Uninjected
	asking := func(*unstructured.Unstructured) (string, bool) { return why, true }
	names, _, err = l.objects(ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, selectors, asking)
	return names, why, err
}

// groups are those that the API server has, each in the version that it prefers.
// Source: Kubernetes, API discovery, APIGroupList.
func (l *leftOut) groups(ctx context.Context) (map[string]schema.GroupVersion, error) {
	text, err := l.server.about.Get().AbsPath("/apis").SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var list metav1.APIGroupList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("which groups are served: %w", err)
	}
	all := map[string]schema.GroupVersion{"": {Version: "v1"}}
	for _, g := range list.Groups {
		all[g.Name] = schema.GroupVersion{Group: g.Name, Version: g.PreferredVersion.Version}
	}
	return all, nil
}

// resources are those of a version of a group.
func (l *leftOut) resources(ctx context.Context, at schema.GroupVersion) ([]metav1.APIResource, error) {
	if at.Group != "" {
		return kube.Resources(ctx, l.server.about, at)
	}
	list := metav1.Verbs{"list"} // always there
	return []metav1.APIResource{
		{Name: "namespaces", Kind: "Namespace", Verbs: list}, {Name: "pods", Kind: "Pod", Verbs: list}, {Name: "services", Kind: "Service", Verbs: list},
	}, nil
}

// reads reports whether a kind is one that is read.
func reads(group, kind string) bool {
	table := group + "/" + kind
	if _, ok := gatewayapi.Lookup(table); ok {
		return true
	}
	return slices.Contains(tables(), table)
}

// objects are the names of those objects, of those that selectors select, that nobody serves, and
// why that is said of the first.
func (l *leftOut) objects(ctx context.Context, at schema.GroupVersionResource, selectors []string,
	unserved func(*unstructured.Unstructured) (why string, is bool),
) (names []string, why string, err error) {
	if len(selectors) == 0 {
		selectors = []string{""}
	}
	for _, selector := range selectors {
		list, err := l.server.objects.Resource(at).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: mostLeftOut})
		switch {
		case apierrors.IsForbidden(err):
			if what := at.GroupResource().String(); !l.unread[what] {
				l.unread[what] = true
				l.log(sdk.Info, "this account may not list a kind: whether objects of it are left out is not known", "kind", what)
			}
			continue
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
			continue // it has just gone
		case err != nil:
			return nil, "", err
		}
		for i := range list.Items {
			if text, ok := unserved(&list.Items[i]); ok {
				names, why = append(names, strings.TrimPrefix(list.Items[i].GetNamespace()+"/"+list.Items[i].GetName(), "/")), cmp.Or(why, text)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), why, nil
}

// unserved reports whether nobody serves an object, and why, as of one in a file.
func unserved(u *unstructured.Unstructured) (why string, is bool) {
	text, err := u.MarshalJSON()
	if err != nil {
		return "", false
	}
	for _, d := range (kinds.Reader{Grants: true, Gateways: true}).Read("", text) {
		for _, f := range d.Faults {
			if f.Code == kinds.CodeUnserved {
				return f.Message, true
			}
		}
	}
	return "", false
}

// counted says that objects of a kind are left out.
func counted(group, kind string, names []string, why string) (f kinds.Fault, any bool) {
	n := len(names)
	if n == 0 {
		return f, false
	}
	text := fmt.Sprintf("%s is left out: %s", names[0], why)
	if n > 1 {
		text = fmt.Sprintf("%d are left out, such as %s: %s", n, names[0], why)
	}
	if n >= mostLeftOut {
		text = fmt.Sprintf("%d or more are left out, such as %s: %s", n, names[0], why)
	}
	return kinds.Fault{
		File: "k8s://" + strings.TrimPrefix(group+"/"+kind, "/"), Kind: kind, Code: kinds.CodeUnserved, Severity: finding.Warning, Message: text, Left: n,
	}, true
}
