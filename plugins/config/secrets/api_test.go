package secrets

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
)

// api is an API server as far as the plugin asks it: it lists and watches Secrets and ConfigMaps,
// whole or their metadata, and says what accounts may do. It counts what it is asked.
type api struct {
	*httptest.Server

	mu      sync.Mutex
	version int
	objects map[string]object // by resource/namespace/name
	log     []event
	stirred chan struct{} // closed when anything changes
	// denied are resource/namespace whose metadata may not be watched; mayList are accounts.
	denied, mayList map[string]bool
	// single and wide are watches that are open, reads what was read by name.
	single, wide, reads, reviews int
}

type object struct {
	resource, namespace, name, value string
	version                          int
}

type event struct {
	what string
	object
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{objects: map[string]object{}, denied: map[string]bool{}, mayList: map[string]bool{}, stirred: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/{resource}", a.get)
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", a.review)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

func (a *api) client(t *testing.T) *kube.Client {
	t.Helper()
	c, err := kube.NewClient(&rest.Config{Host: a.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// put makes or changes an object; an empty value deletes it.
func (a *api) put(resource, namespace, name, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := resource + "/" + namespace + "/" + name
	_, had := a.objects[key]
	a.version++
	o := object{resource, namespace, name, value, a.version}
	what := "ADDED"
	switch {
	case value == "":
		delete(a.objects, key)
		what = "DELETED"
	case had:
		what = "MODIFIED"
	}
	if value != "" {
		a.objects[key] = o
	}
	a.log = append(a.log, event{what, o})
	close(a.stirred)
	a.stirred = make(chan struct{})
}

// deny forbids, or allows, to watch the metadata of a namespace. Watches that there are end.
func (a *api) deny(place string, on bool) {
	a.mu.Lock()
	a.denied[place] = on
	a.mu.Unlock()
	a.CloseClientConnections()
}

// asked returns how many watches are open, and how often objects were read by their names.
func (a *api) asked() (single, wide, reads int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.single, a.wide, a.reads
}

func (a *api) review(w http.ResponseWriter, q *http.Request) {
	var review struct {
		Spec struct {
			User string `json:"user"`
		} `json:"spec"`
	}
	_ = json.NewDecoder(q.Body).Decode(&review)
	a.mu.Lock()
	a.reviews++
	allowed := a.mayList[strings.TrimPrefix(review.Spec.User, "system:serviceaccount:")]
	a.mu.Unlock()
	answer(w, http.StatusCreated,
		map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": map[string]any{"allowed": allowed}})
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// asking is what is asked of objects.
type asking struct {
	resource, namespace, name string
	metadata                  bool
}

func (q asking) has(o object) bool {
	return o.resource == q.resource && o.namespace == q.namespace && (q.name == "" || o.name == q.name)
}

// shown is an object as it is asked for.
func (q asking) shown(o object) map[string]any {
	out := map[string]any{
		"apiVersion": "v1", "kind": map[string]string{"secrets": "Secret", "configmaps": "ConfigMap"}[q.resource],
		"metadata": map[string]any{"namespace": o.namespace, "name": o.name, "resourceVersion": strconv.Itoa(o.version), "uid": o.name},
	}
	switch {
	case q.metadata:
		out["apiVersion"], out["kind"] = "meta.k8s.io/v1", "PartialObjectMetadata"
	case q.resource == "secrets":
		out["data"] = map[string]any{"tls.crt": base64.StdEncoding.EncodeToString([]byte(o.value))}
	default:
		out["data"] = map[string]any{"ca.crt": o.value}
	}
	return out
}

func (a *api) get(w http.ResponseWriter, r *http.Request) {
	q := asking{
		resource: r.PathValue("resource"), namespace: r.PathValue("namespace"),
		name:     strings.TrimPrefix(r.FormValue("fieldSelector"), "metadata.name="),
		metadata: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"),
	}
	watching := r.FormValue("watch") == "true" || r.FormValue("watch") == "1"
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.metadata && a.denied[q.resource+"/"+q.namespace] {
		answer(w, http.StatusForbidden,
			map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "it may not"})
		return
	}
	if watching {
		a.watch(w, r, q)
		return
	}
	if q.name != "" {
		a.reads++
	}
	items := []any{}
	for _, o := range a.objects {
		if q.has(o) {
			items = append(items, q.shown(o))
		}
	}
	out := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}, "items": items}
	if q.metadata {
		out["apiVersion"], out["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	answer(w, http.StatusOK, out)
}

// watch tells what there is, if that is asked for, and what changes. a.mu is held, but for waiting.
func (a *api) watch(w http.ResponseWriter, r *http.Request, q asking) {
	count := &a.single
	if q.name == "" {
		count = &a.wide
	}
	*count++
	defer func() { *count-- }()
	w.Header().Set("Content-Type", "application/json")
	tell := func(what string, shown map[string]any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": what, "object": shown})
	}
	from, _ := strconv.Atoi(r.FormValue("resourceVersion"))
	if r.FormValue("sendInitialEvents") == "true" {
		for _, o := range a.objects {
			if q.has(o) {
				tell("ADDED", q.shown(o))
			}
		}
		from = a.version
		end := q.shown(object{version: from})
		end["metadata"] = map[string]any{"resourceVersion": strconv.Itoa(from), "annotations": map[string]any{"k8s.io/initial-events-end": "true"}}
		tell("BOOKMARK", end)
	}
	for {
		for _, e := range a.log {
			if e.version > from && q.has(e.object) {
				tell(e.what, q.shown(e.object))
			}
		}
		from = a.version
		stirred := a.stirred
		a.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-stirred:
		case <-r.Context().Done():
		}
		a.mu.Lock()
		if r.Context().Err() != nil {
			return
		}
	}
}

func (a *api) String() string {
	single, wide, reads := a.asked()
	return fmt.Sprintf("%d watches of one, %d of a namespace, %d reads", single, wide, reads)
}
