package modules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	extensions "istio.io/api/extensions/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// want is a module that a resource asks for.
type want struct {
	Namespace, URL, SHA256 string
	// Always: what the URL leads to now is asked each time.
	Always bool
	// Secret of the namespace that has credentials, and these, as the state has them: a text like
	// Docker's config.json, or why there is none.
	Secret, Login, Absent string
	// Spec is what the resource says, a WasmConfig as bytes, so that another one is looked at anew.
	Spec string
}

// wanted is what rows ask for.
type wanted struct {
	// modules, and whose each is, by the key of its row.
	modules map[string]want
	owners  map[string][]string
	// secrets are those that have credentials.
	secrets map[secrets.Object]bool
	// refused are how many more a namespace asks for than it may.
	refused map[string]int
	wrong   []error
}

// mostSpec is how many bytes a resource may say of its module: its row must fit into a message.
const mostSpec = 64 << 10

// wants returns what rows ask for, at most so many modules for one namespace: those of the oldest
// resources. What can't be read asks for nothing: who checks resources says so.
func wants(s *state.State, most int) *wanted {
	out := &wanted{modules: map[string]want{}, owners: map[string][]string{}, secrets: map[secrets.Object]bool{}, refused: map[string]int{}}
	counts := map[string]int{}
	for _, r := range resources(s) {
		w, err := wantOf(s, r)
		switch {
		case err != nil:
			out.wrong = append(out.wrong, fmt.Errorf("%s: %w", r.key, err))
			continue
		case w == nil:
			continue
		case counts[w.Namespace] == most:
			out.refused[w.Namespace]++
			continue
		}
		counts[w.Namespace]++
		out.modules[r.key], out.owners[r.key] = *w, []string{w.Namespace}
		if w.Secret != "" {
			out.secrets[secretOf(*w)] = true
		}
	}
	return out
}

// resource is one that names a module.
type resource struct {
	key, namespace string
	created        int64
	config         *extensions.WasmConfig
}

// resources are all of them, the oldest first.
func resources(s *state.State) (all []resource) {
	add := func(kind string, row *pb.Row, c *extensions.WasmConfig) {
		namespace, name := kinds.SplitKey(row.Key)
		all = append(all, resource{modules.Key(kind, namespace, name), namespace, row.Created, c})
	}
	for _, row := range s.Table(kinds.WasmPlugin).All() {
		if p, err := kinds.Decode[*extensions.WasmPlugin](row); err == nil {
			add("WasmPlugin", row, modules.ConfigOf(p))
		}
	}
	for _, row := range s.Table(kinds.TrafficExtension).All() {
		if e, err := kinds.Decode[*extensions.TrafficExtension](row); err == nil && e.GetWasm() != nil {
			add("TrafficExtension", row, e.GetWasm())
		}
	}
	slices.SortFunc(all, func(a, b resource) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.key, b.key)) })
	return all
}

func secretOf(w want) secrets.Object {
	return secrets.Object{Kind: secrets.Secret, Namespace: w.Namespace, Name: w.Secret}
}

// wantOf is what a resource asks for; nil: its module is in a file of the proxy's.
func wantOf(s *state.State, r resource) (*want, error) {
	u, err := modules.URL(r.config)
	if err != nil {
		return nil, err
	}
	w := &want{Namespace: r.namespace, URL: u.String(), SHA256: strings.ToLower(r.config.Sha256), Secret: r.config.ImagePullSecret}
	switch u.Scheme {
	case "file":
		return nil, nil
	case "oci":
	case "http", "https":
		w.Secret = "" // credentials are for registries
	default:
		return nil, fmt.Errorf("url: modules are fetched by oci, https and http, not by %.20q", u.Scheme)
	}
	if w.Always, err = isAlways(r.config.ImagePullPolicy, w.URL); err != nil {
		return nil, err
	}
	spec, err := kinds.Encode(r.config)
	if err != nil || len(spec) > mostSpec {
		return nil, fmt.Errorf("it says more than %d bytes of its module: %w", mostSpec, cmp.Or(err, errLong))
	}
	w.Spec = string(spec)
	if w.Secret != "" {
		w.Login, w.Absent = login(s, secretOf(*w))
	}
	return w, nil
}

var errLong = errors.New("make pluginConfig shorter")

// isAlways reports whether what a URL leads to is asked each time.
// Source: Istio, WasmPlugin.imagePullPolicy.
func isAlways(policy extensions.PullPolicy, url string) (bool, error) {
	switch policy {
	case extensions.PullPolicy_Always:
		return true, nil
	case extensions.PullPolicy_IfNotPresent:
		return false, nil
	}
	if !strings.HasPrefix(url, scheme) {
		return false, nil
	}
	ref, err := referenceOf(url)
	return err == nil && ref.Digest() == "" && (ref.Tag() == "" || ref.Tag() == "latest"), err
}

// login are the credentials of a Secret, or why there are none.
func login(s *state.State, o secrets.Object) (text, absent string) {
	if row := s.Table(secrets.SecretTable).Get(o.Key()); row != nil {
		content, err := secrets.Decode(row)
		if err != nil {
			return "", err.Error()
		}
		if text = string(content.Data[secrets.Docker]); text == "" {
			return "", fmt.Sprintf("it has no %s: its type must be kubernetes.io/dockerconfigjson", secrets.Docker)
		}
		return text, ""
	}
	if row := s.Table(secrets.Absences).Get(o.AbsenceKey()); row != nil {
		if a, err := secrets.DecodeAbsence(row); err == nil {
			return "", a.Reason
		}
	}
	return "", "nobody has said yet whether it is there; config/secrets does"
}

// complaints are what is said of what isn't fetched; nil: nothing.
func (all *wanted) complaints(most int) error {
	wrong := slices.Clone(all.wrong)
	for _, namespace := range slices.Sorted(maps.Keys(all.refused)) {
		wrong = append(wrong, fmt.Errorf("resources of namespace %q name %d modules more than the %d that one may have (maxPerNamespace): "+
			"those of the oldest are fetched", namespace, all.refused[namespace], most))
	}
	return errors.Join(wrong...)
}
