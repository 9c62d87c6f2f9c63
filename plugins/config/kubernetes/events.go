package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
)

const (
	// reasonHeld is the reason of Events of objects that are held.
	reasonHeld = "Held"
	// mostMessage is how long an Event's message may be, in bytes.
	mostMessage = 1000
	// eventsPerSecond, and eventsAtOnce beyond that, are written at most; of what is more, a
	// thousand wait, and the rest is left out.
	eventsPerSecond, eventsAtOnce = 5, 50
)

// events says in a Kubernetes Event of each object that is held why it is, once for each of its
// versions that an author has written. What an API server says twice of an object is counted by
// client-go. nil says nothing.
type events struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
	// said is what was said last of an object.
	said map[key]said
	// refusals is what was said last of what proxies refuse.
	refusals map[key]said
}

// said is of which version of an object, as its author counts them, what was said.
type said struct {
	uid        types.UID
	generation int64
	text       string
}

// newEvents begins to write Events, until ctx ends. complain is told why one can't be written.
func newEvents(ctx context.Context, objects dynamic.Interface, complain func(error)) *events {
	quiet := klog.NewContext(ctx, klog.Logger{}) // complain is all that is to be logged
	b := record.NewBroadcaster(record.WithContext(quiet))
	b.StartRecordingToSink(&sink{
		ctx: ctx, objects: objects.Resource(corev1.SchemeGroupVersion.WithResource("events")), complain: complain,
		pace: rate.NewLimiter(eventsPerSecond, eventsAtOnce),
	})
	return &events{b, b.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: manager}), map[key]said{}, map[key]said{}}
}

// close ends what newEvents began.
func (e *events) close() {
	if e != nil {
		e.broadcaster.Shutdown()
	}
}

// held says why an object is held; serves: its last good version is served.
func (e *events) held(k key, o *object, faults []kinds.Fault, serves bool) {
	if e == nil {
		return
	}
	now := said{o.UID, o.Generation, message(faults, serves)}
	if e.said[k] == now {
		return
	}
	e.said[k] = now
	e.recorder.Event(o.reference(k), corev1.EventTypeWarning, reasonHeld, now.text)
}

// reference names an object in an Event.
func (o *object) reference(k key) *corev1.ObjectReference {
	_, kind, _ := strings.Cut(k.table, "/")
	return &corev1.ObjectReference{
		APIVersion: o.version, Kind: kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
	}
}

// fine forgets what was said of an object that is not held, or is gone.
func (e *events) fine(k key) {
	if e != nil {
		delete(e.said, k)
	}
}

// message says what is wrong, and what is served meanwhile.
func message(faults []kinds.Fault, serves bool) string {
	meanwhile := "it is not served until it is mended"
	if serves {
		meanwhile = "its last good version stays served"
	}
	faults = slices.DeleteFunc(slices.Clone(faults), func(f kinds.Fault) bool { return f.Severity != finding.Error })
	const between = "; "
	room := mostMessage - len(meanwhile) - len("…; and 1000 more; ")
	var text string
	for i, f := range faults {
		next := f.Text() + between
		if len(text)+len(next) > room {
			if i == 0 { // cut, at a letter's end
				text = strings.ToValidUTF8(next[:room], "") + "…" + between
				i++
			}
			if left := len(faults) - i; left > 0 {
				text += fmt.Sprintf("and %d more%s", left, between)
			}
			break
		}
		text += next
	}
	return text + meanwhile
}

// sink writes Events; what fails is left to client-go to try again, or not.
type sink struct {
	ctx      context.Context
	objects  dynamic.NamespaceableResourceInterface
	complain func(error)
	pace     *rate.Limiter
	// failed: it was said that Events can't be written, and none was since.
	failed atomic.Bool
}

var _ record.EventSink = (*sink)(nil)

// Create writes a new Event.
func (s *sink) Create(e *corev1.Event) (*corev1.Event, error) {
	return s.write(func(ctx context.Context) (*unstructured.Unstructured, error) {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(e)
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{Object: u}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
		return s.objects.Namespace(e.Namespace).Create(ctx, object, metav1.CreateOptions{FieldManager: manager})
	})
}

// Update writes an Event over what there is of its name.
func (s *sink) Update(e *corev1.Event) (*corev1.Event, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return s.Patch(e, text)
}

// Patch counts an Event once more.
func (s *sink) Patch(e *corev1.Event, patch []byte) (*corev1.Event, error) {
	return s.write(func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.objects.Namespace(e.Namespace).Patch(ctx, e.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	})
}

// write writes one Event, in its turn.
func (s *sink) write(send func(context.Context) (*unstructured.Unstructured, error)) (*corev1.Event, error) {
	if err := s.pace.Wait(s.ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	u, err := send(ctx)
	if err != nil {
		if s.ctx.Err() == nil && sdk.CodeOf(kube.Failure(err)) != sdk.StoreNotFound && !s.failed.Swap(true) {
			s.complain(err)
		}
		return nil, err
	}
	s.failed.Store(false)
	out := &corev1.Event{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
}
