package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
)

// DefaultValidator is the name of the ValidatingWebhookConfiguration of the default tag, as
// istioctl has it.
const DefaultValidator = "istiod-default-validator"

// OfTag is the name of a tag's MutatingWebhookConfiguration.
func OfTag(tag string) string { return "istio-revision-tag-" + tag }

// Names of what else a tag is made of.
func tagService(tag string) string { return "istiod-revision-tag-" + tag }
func tagRole(tag string) string    { return "coxswain-revision-tag-" + tag }

// Tags sets, lists and removes tags of revisions in a cluster.
type Tags struct {
	Objects dynamic.Interface
	// Namespace is the control planes'.
	Namespace string
}

// Tag is a name that stands for a revision.
type Tag struct {
	Tag      string `json:"tag"`
	Revision string `json:"revision"`
	// Namespaces have the tag as their label istio.io/rev, in order; of the default tag, those with
	// istio-injection=enabled, too.
	Namespaces []string `json:"namespaces"`
	// Gone reports that no control plane of the revision is there: pods of these namespaces can't
	// be created.
	Gone bool `json:"gone,omitempty"`
}

// Wanted says how a tag is to be.
type Wanted struct {
	Tag, Revision string
	// Overwrite moves a tag that is there, and lets it be called as a revision is.
	Overwrite bool
	// Everywhere: the default tag asks about pods of namespaces without labels, too.
	Everywhere bool
	// Name is the MutatingWebhookConfiguration's, if it is another one.
	Name string
}

// Made is what a tag is made of: objects to be applied, in order, and those of the default revision
// that are to be put out of use.
type Made struct {
	Injecting *admission.MutatingWebhookConfiguration
	// Judging is of the default tag alone.
	Judging *admission.ValidatingWebhookConfiguration
	// Service is nil where the revision has none.
	Service *corev1.Service
	// Role and Binding let the control plane keep its root in the configurations; nil where it is
	// not known whose account it has.
	Role    *rbacv1.ClusterRole
	Binding *rbacv1.ClusterRoleBinding
	// Others are configurations that are put out of use; Gone are what a tag had before, and has no
	// more.
	Others []string
}

// Objects are what is to be applied, in order.
func (m *Made) Objects() (all []any) {
	if m.Role != nil { // first, so that roots are written as soon as there is something to write them into
		all = append(all, m.Role, m.Binding)
	}
	if m.Service != nil {
		all = append(all, m.Service)
	}
	all = append(all, m.Injecting)
	if m.Judging != nil {
		all = append(all, m.Judging)
	}
	return all
}

// apply makes the objects as they are to be.
func (m *Made) apply(ctx context.Context, objects dynamic.Interface) (lines []string, err error) {
	for _, o := range m.Objects() {
		var line string
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			line, err = roles.put(ctx, objects, o, "rules")
		case *rbacv1.ClusterRoleBinding:
			line, err = bindings.put(ctx, objects, o, "subjects")
		case *corev1.Service:
			line, err = Services.put(ctx, objects, o)
		case *admission.MutatingWebhookConfiguration:
			line, err = Mutating.put(ctx, objects, o, "webhooks")
		case *admission.ValidatingWebhookConfiguration:
			line, err = Validating.put(ctx, objects, o, "webhooks")
		}
		if err != nil {
			return lines, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// Make says what a tag is made of. The error says why it can't be: no control plane of that
// revision, or several; a tag or a revision of that name.
func (t Tags) Make(ctx context.Context, w Wanted) (*Made, error) {
	if wrong := validation.IsDNS1123Label(w.Tag); len(wrong) > 0 {
		return nil, fmt.Errorf("the tag %q can't be a label: %s", w.Tag, wrong[0])
	}
	if w.Everywhere && w.Tag != Default {
		return nil, errors.New("--auto-inject-namespaces is for the tag default: pods without labels are the default revision's")
	}
	hooks, err := t.mutating(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.free(hooks); err != nil {
		return nil, err
	}
	of, err := revisionOf(hooks, w.Revision)
	if err != nil {
		return nil, err
	}
	return t.made(ctx, w, of, hooks)
}

// free reports an error where the name is another's.
func (w Wanted) free(hooks []*admission.MutatingWebhookConfiguration) error {
	for _, h := range hooks {
		switch tag := h.Labels[TagLabel]; {
		case w.Overwrite:
		case tag == w.Tag:
			return fmt.Errorf("the tag %s is there, and stands for the revision %s; --overwrite moves it", w.Tag, h.Labels[RevisionLabel])
		case tag == "" && w.Tag != Default && h.Labels[RevisionLabel] == w.Tag:
			return fmt.Errorf("%s is a revision: %s is its configuration; name the tag otherwise", w.Tag, h.Name)
		}
	}
	return nil
}

// revisionOf finds the configuration that came with a revision.
func revisionOf(hooks []*admission.MutatingWebhookConfiguration, revision string) (of *admission.MutatingWebhookConfiguration, err error) {
	var there []string
	for _, h := range hooks {
		if h.Labels[TagLabel] != "" {
			continue
		}
		there = append(there, h.Labels[RevisionLabel])
		if h.Labels[RevisionLabel] != revision || len(h.Webhooks) == 0 {
			continue
		}
		if of != nil {
			return nil, fmt.Errorf("the revision %s has two configurations, %s and %s: a tag can't stand for both", revision, of.Name, h.Name)
		}
		of = h
	}
	if of == nil {
		return nil, fmt.Errorf("no MutatingWebhookConfiguration has the label %s=%s; there are those of %q", RevisionLabel, revision, there)
	}
	return of, nil
}

// made makes a tag of a revision's configuration.
func (t Tags) made(ctx context.Context, w Wanted, of *admission.MutatingWebhookConfiguration, hooks []*admission.MutatingWebhookConfiguration) (*Made, error) {
	first := of.Webhooks[0]
	end := injectorSuffix
	if !strings.HasSuffix(first.Name, "."+injectorSuffix) && strings.HasSuffix(first.Name, istiods) { // its webhooks are called so that it finds them
		end = istiods
	}
	c := Config{Revision: w.Revision, Tag: w.Tag, Namespace: t.Namespace, Everywhere: w.Everywhere}
	if first.ReinvocationPolicy != nil {
		c.Again = *first.ReinvocationPolicy
	}
	m := &Made{Injecting: c.Injecting(), Judging: c.Judging()}
	if w.Name != "" {
		m.Injecting.Name = w.Name
	}
	for i := range m.Injecting.Webhooks {
		h := &m.Injecting.Webhooks[i]
		h.Name, h.ClientConfig = strings.TrimSuffix(h.Name, injectorSuffix)+end, *first.ClientConfig.DeepCopy()
	}
	if m.Judging != nil {
		h := &m.Judging.Webhooks[0]
		if h.ClientConfig = judgingClient(first.ClientConfig); end == istiods {
			h.Name = "validation.istio.io"
		}
		for _, h := range hooks {
			if h.Labels[TagLabel] == "" && h.Labels[RevisionLabel] == Default {
				m.Others = append(m.Others, h.Name)
			}
		}
		slices.Sort(m.Others)
	}
	marks := map[string]string{managedLabel: ours, RevisionLabel: w.Revision, TagLabel: w.Tag}
	account := of.Annotations[AccountNote]
	if account == "" && end == injectorSuffix {
		var err error
		if account, err = t.account(ctx, first.ClientConfig.Service); err != nil {
			return nil, err
		}
	}
	m.rights(w, account, marks)
	return m, t.service(ctx, m, w, marks)
}

// judgingClient is how the server of an injector is asked about objects.
func judgingClient(of admission.WebhookClientConfig) admission.WebhookClientConfig {
	out, path := *of.DeepCopy(), "/validate"
	if out.URL != nil {
		host, _, _ := strings.Cut(strings.TrimPrefix(*out.URL, "https://"), "/")
		at := "https://" + host + path
		out.URL = &at
	}
	if out.Service != nil {
		out.Service.Path = &path
	}
	return out
}

// rights let the control plane's account change the tag's configurations, and no others.
func (m *Made) rights(w Wanted, account string, marks map[string]string) {
	namespace, name, ok := strings.Cut(account, "/")
	if !ok {
		return
	}
	meta := metav1.ObjectMeta{Name: tagRole(w.Tag), Labels: maps.Clone(marks)}
	rule := func(resource, of string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{admission.GroupName}, Resources: []string{resource},
			ResourceNames: []string{of}, Verbs: []string{"get", "patch"}}
	}
	m.Role = &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: meta,
		Rules: []rbacv1.PolicyRule{rule("mutatingwebhookconfigurations", m.Injecting.Name)},
	}
	if m.Judging != nil {
		m.Role.Rules = append(m.Role.Rules, rule("validatingwebhookconfigurations", m.Judging.Name))
	}
	m.Binding = &rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: *meta.DeepCopy(),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
	}
}

// account finds the account of the control plane behind a Service, NAMESPACE/NAME: that of the
// Deployments whose pods the Service selects; empty: none, or several.
func (t Tags) account(ctx context.Context, of *admission.ServiceReference) (account string, err error) {
	if of == nil {
		return "", nil
	}
	services, err := Services.List(ctx, t.Objects, of.Namespace, "")
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(services, func(s *corev1.Service) bool { return s.Name == of.Name })
	if at < 0 || len(services[at].Spec.Selector) == 0 {
		return "", nil
	}
	selects := labels.SelectorFromSet(services[at].Spec.Selector)
	deployments, err := Deployments.List(ctx, t.Objects, of.Namespace, "")
	if err != nil {
		return "", err
	}
	for _, d := range deployments {
		if !selects.Matches(labels.Set(d.Spec.Template.Labels)) {
			continue
		}
		is := of.Namespace + "/" + cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
		if account != "" && account != is {
			return "", nil
		}
		account = is
	}
	return account, nil
}

// service gives the tag a Service as the revision's is, so that what names a tag's control plane
// finds it.
func (t Tags) service(ctx context.Context, m *Made, w Wanted, marks map[string]string) error {
	found, err := Services.List(ctx, t.Objects, t.Namespace, RevisionLabel+"="+w.Revision+",app=istiod,!"+TagLabel)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return nil // none, as outside of a cluster; or it is not known which
	}
	of := found[0]
	m.Service = &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: tagService(w.Tag), Namespace: t.Namespace, Labels: maps.Clone(marks)},
		Spec:       corev1.ServiceSpec{Selector: of.Spec.Selector, IPFamilyPolicy: of.Spec.IPFamilyPolicy, IPFamilies: of.Spec.IPFamilies},
	}
	m.Service.Labels["app"] = "istiod"
	for _, p := range of.Spec.Ports {
		m.Service.Spec.Ports = append(m.Service.Spec.Ports, corev1.ServicePort{Name: p.Name, Port: p.Port, Protocol: p.Protocol, TargetPort: p.TargetPort})
	}
	return nil
}

// Set makes a tag, or moves it. What was said of it is returned, a line for each object.
func (t Tags) Set(ctx context.Context, w Wanted) (lines []string, err error) {
	m, err := t.Make(ctx, w)
	if err != nil {
		return nil, err
	}
	if lines, err = m.apply(ctx, t.Objects); err != nil {
		return lines, err
	}
	if m.Role == nil {
		lines = append(lines, fmt.Sprintf("the control plane's account is not known (annotation %s of the "+
			"revision's configuration, or a Deployment behind its Service): who answers keeps its root current only "+
			"where it may patch %s", AccountNote, m.Injecting.Name))
	}
	if w.Tag != Default {
		return lines, nil
	}
	// Last: until then two would inject, never nobody.
	stopped, err := t.stop(ctx)
	return append(lines, stopped...), err
}

// never selects nothing. Source: istioctl, which puts webhooks out of use so.
var never = map[string]string{"istio.io/deactivated": "never-match"}

// selectors are those of a webhook that is out of use.
type selectors struct {
	Namespaces *metav1.LabelSelector `json:"namespaces,omitempty"`
	Objects    *metav1.LabelSelector `json:"objects,omitempty"`
}

// ofDefault selects what came with the default revision.
const ofDefault = RevisionLabel + "=" + Default + ",!" + TagLabel

// change has the webhooks of the default revision changed, and written where something was. The
// function gets a configuration's metadata, and the selectors of each of its webhooks by name.
func (t Tags) change(ctx context.Context, said string, change func(m *metav1.ObjectMeta, hooks map[string]pair) bool) (lines []string, err error) {
	mutating, err := Mutating.List(ctx, t.Objects, "", ofDefault)
	if err != nil {
		return nil, err
	}
	for _, c := range mutating {
		hooks := map[string]pair{}
		for i := range c.Webhooks {
			hooks[c.Webhooks[i].Name] = pair{&c.Webhooks[i].NamespaceSelector, &c.Webhooks[i].ObjectSelector}
		}
		if !change(&c.ObjectMeta, hooks) {
			continue
		}
		if err := Mutating.update(ctx, t.Objects, c); err != nil {
			return lines, err
		}
		lines = append(lines, Mutating.Name+"/"+c.Name+" "+said)
	}
	validating, err := Validating.List(ctx, t.Objects, "", ofDefault)
	if err != nil {
		return lines, err
	}
	for _, c := range validating {
		hooks := map[string]pair{}
		for i := range c.Webhooks {
			if c.Webhooks[i].Name == validatorSuffix { // others judge what has a label
				hooks[c.Webhooks[i].Name] = pair{&c.Webhooks[i].NamespaceSelector, &c.Webhooks[i].ObjectSelector}
			}
		}
		if !change(&c.ObjectMeta, hooks) {
			continue
		}
		if err := Validating.update(ctx, t.Objects, c); err != nil {
			return lines, err
		}
		lines = append(lines, Validating.Name+"/"+c.Name+" "+said)
	}
	return lines, nil
}

// pair are the selectors of a webhook.
type pair struct{ namespaces, objects **metav1.LabelSelector }

// stop puts the webhooks of the default revision out of use, whose part the default tag has.
func (t Tags) stop(ctx context.Context) ([]string, error) {
	return t.change(ctx, "out of use: the tag default has its part", func(m *metav1.ObjectMeta, hooks map[string]pair) bool {
		was := map[string]selectors{}
		for name, h := range hooks {
			halt(was, name, h.namespaces, h.objects)
		}
		return note(m, was) == nil && len(was) > 0
	})
}

// resume puts webhooks back to use that stop put out of it.
func (t Tags) resume(ctx context.Context) ([]string, error) {
	return t.change(ctx, "in use again", func(m *metav1.ObjectMeta, hooks map[string]pair) bool {
		was := noted(m)
		for name, s := range was {
			if h, ok := hooks[name]; ok {
				*h.namespaces, *h.objects = s.Namespaces, s.Objects
			}
		}
		return len(was) > 0
	})
}

// halt puts a webhook out of use, unless it is.
func halt(was map[string]selectors, name string, namespaces, objects **metav1.LabelSelector) {
	if *namespaces != nil && maps.Equal((*namespaces).MatchLabels, never) {
		return
	}
	was[name] = selectors{*namespaces, *objects}
	*namespaces, *objects = &metav1.LabelSelector{MatchLabels: maps.Clone(never)}, &metav1.LabelSelector{MatchLabels: maps.Clone(never)}
}

// note keeps selectors with the configuration.
func note(m *metav1.ObjectMeta, was map[string]selectors) error {
	text, err := json.Marshal(was)
	if err != nil || len(was) == 0 {
		return err
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[selectorsNote] = string(text)
	return nil
}

// noted returns the selectors that note kept, and takes the note away.
func noted(m *metav1.ObjectMeta) (was map[string]selectors) {
	text, ok := m.Annotations[selectorsNote]
	if !ok || json.Unmarshal([]byte(text), &was) != nil {
		return nil
	}
	delete(m.Annotations, selectorsNote)
	return was
}

// mutating are all configurations with the label of a revision.
func (t Tags) mutating(ctx context.Context) ([]*admission.MutatingWebhookConfiguration, error) {
	return Mutating.List(ctx, t.Objects, "", RevisionLabel)
}

// List returns the tags, by name.
func (t Tags) List(ctx context.Context) ([]Tag, error) {
	hooks, err := t.mutating(ctx)
	if err != nil {
		return nil, err
	}
	there, tags := map[string]bool{}, map[string]*Tag{}
	for _, h := range hooks {
		tag, revision := h.Labels[TagLabel], h.Labels[RevisionLabel]
		if tag == "" {
			there[revision] = true
			continue
		}
		tags[tag] = &Tag{Tag: tag, Revision: revision, Namespaces: []string{}}
	}
	namespaces, err := Namespaces.List(ctx, t.Objects, "", "")
	if err != nil {
		return nil, err
	}
	for _, n := range namespaces {
		label := n.Labels[RevisionLabel]
		if n.Labels[namespaceLabel] != "" { // which counts in its place
			label = ""
			if n.Labels[namespaceLabel] == "enabled" {
				label = Default
			}
		}
		if of := tags[label]; of != nil {
			of.Namespaces = append(of.Namespaces, n.Name)
		}
	}
	out := []Tag{}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		of := tags[name]
		of.Gone = !there[of.Revision]
		slices.Sort(of.Namespaces)
		out = append(out, *of)
	}
	return out, nil
}

// ErrNoTag is that a tag is not there.
var ErrNoTag = errors.New("there is no such tag")

// Remove takes a tag away, and of the default one has those in use again whose part it had. What
// was said of it is returned, a line for each object.
func (t Tags) Remove(ctx context.Context, tag string) (lines []string, err error) {
	if wrong := validation.IsDNS1123Label(tag); len(wrong) > 0 {
		return nil, fmt.Errorf("the tag %q can't be a label: %s", tag, wrong[0])
	}
	of := TagLabel + "=" + tag
	mutating, err := Mutating.List(ctx, t.Objects, "", of)
	if err != nil {
		return nil, err
	}
	if len(mutating) == 0 {
		return nil, fmt.Errorf("%s: %w", tag, ErrNoTag)
	}
	if tag == Default { // first: until the tag is gone two inject, never nobody
		if lines, err = t.resume(ctx); err != nil {
			return lines, err
		}
	}
	r := &remover{objects: t.Objects}
	for _, c := range mutating {
		Mutating.remove(ctx, r, "", c.Name)
	}
	validating, err := Validating.List(ctx, t.Objects, "", of)
	if err != nil {
		return append(lines, r.lines...), err
	}
	for _, c := range validating {
		Validating.remove(ctx, r, "", c.Name)
	}
	services, err := Services.List(ctx, t.Objects, t.Namespace, of)
	if err != nil {
		return append(lines, r.lines...), err
	}
	for _, s := range services {
		Services.remove(ctx, r, s.Namespace, s.Name)
	}
	r.role(ctx, tagRole(tag))
	return append(lines, r.lines...), errors.Join(r.errs...)
}
