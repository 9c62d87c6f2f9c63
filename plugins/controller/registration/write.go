package registration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// localityLabel is one that agents have whose value no label of an object can have; the locality
// has a field of its own.
const localityLabel = "istio-locality"

// object is an object as JSON has it; numbers stay as they are.
type object map[string]any

func decode(text []byte) (o object, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&o)
	return o, err
}

// within returns a field that is an object, which is made if it is none.
func (o object) within(name string) object {
	in, ok := o[name].(map[string]any)
	if !ok {
		in = map[string]any{}
		o[name] = in
	}
	return in
}

// moment is how an annotation says a time.
func moment(at time.Time) *string { return new(at.UTC().Format(timeFormat)) }

// get returns an entry and its object; nil: there is none.
func (c *controller) get(ctx context.Context, key string) (*entry, []byte, error) {
	namespace, name := kinds.SplitKey(key)
	text, err := c.objects.Get(ctx, kinds.WorkloadEntry, namespace, name)
	if sdk.CodeOf(err) == sdk.StoreNotFound {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	e, err := ofObject(text)
	return e, text, err
}

// create makes the entry of an agent from its group, as it is now.
func (c *controller) create(ctx context.Context, a *agent) error {
	text, err := c.objects.Get(ctx, kinds.WorkloadGroup, a.namespace, a.group)
	if sdk.CodeOf(err) == sdk.StoreNotFound {
		return errRefused("its WorkloadGroup has gone")
	} else if err != nil {
		return err
	}
	made, err := a.entry(text, c.me)
	if err != nil {
		return err
	}
	if text, err = json.Marshal(made); err != nil {
		return err
	}
	_, err = c.objects.Create(ctx, kinds.WorkloadEntry, text)
	return err
}

// entry is the object that an agent gets of its group's.
func (a *agent) entry(text []byte, me string) (object, error) {
	var group struct {
		APIVersion string
		Metadata   struct{ Name, UID string }
		Spec       json.RawMessage
	}
	if err := json.Unmarshal(text, &group); err != nil {
		return nil, err
	}
	of := &networking.WorkloadGroup{}
	if len(group.Spec) > 0 {
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(group.Spec, of); err != nil {
			return nil, fmt.Errorf("its WorkloadGroup can't be read: %w", err)
		}
	}
	spec := of.Template
	if spec == nil {
		spec = &networking.WorkloadEntry{}
	}
	if !a.has(spec.ServiceAccount) {
		return nil, errRefused(fmt.Sprintf("its WorkloadGroup is for agents of the service account %s, and it is %s", spec.ServiceAccount, a.identity()))
	}
	labels, annotations := map[string]string{}, map[string]string{}
	maps.Copy(labels, spec.Labels)
	maps.Copy(labels, of.Metadata.GetLabels())
	maps.Copy(labels, a.labels)
	delete(labels, localityLabel)
	maps.Copy(annotations, of.Metadata.GetAnnotations())
	maps.Copy(annotations, map[string]string{
		groupAnnotation: a.group, controllerAnnotation: me, connectedAnnotation: *moment(a.since), identityAnnotation: a.identity(),
	})
	delete(annotations, goneAnnotation)
	if a.checked {
		annotations[checkedAnnotation] = "true"
	}
	spec.Address, spec.Labels = a.address, labels
	if a.network != "" {
		spec.Network = a.network
	}
	if a.locality != "" {
		spec.Locality = a.locality
	}
	encoded, err := protojson.Marshal(spec)
	if err != nil {
		return nil, err
	}
	namespace, name := kinds.SplitKey(a.key)
	return object{
		"apiVersion": group.APIVersion, "kind": "WorkloadEntry",
		"metadata": map[string]any{
			"namespace": namespace, "name": name, "labels": labels, "annotations": annotations,
			"ownerReferences": []any{map[string]any{
				"apiVersion": group.APIVersion, "kind": "WorkloadGroup", "name": group.Metadata.Name, "uid": group.Metadata.UID, "controller": true,
			}},
		},
		"spec": json.RawMessage(encoded),
	}, nil
}

// annotate writes annotations of an object, from the version that was read; nil: it has none.
func (c *controller) annotate(ctx context.Context, text []byte, with map[string]*string) error {
	o, err := decode(text)
	if err != nil {
		return err
	}
	annotations := o.within("metadata").within("annotations")
	for name, value := range with {
		if value == nil {
			delete(annotations, name)
		} else {
			annotations[name] = *value
		}
	}
	if text, err = json.Marshal(o); err != nil {
		return err
	}
	_, err = c.objects.Update(ctx, kinds.WorkloadEntry, text)
	return err
}

// part writes that the agent of an entry has gone.
func (c *controller) part(ctx context.Context, text []byte) error {
	return c.annotate(ctx, text, map[string]*string{connectedAnnotation: nil, goneAnnotation: moment(time.Now())})
}

// remove deletes an entry, if it is still as it was read.
func (c *controller) remove(ctx context.Context, key string, text []byte) error {
	namespace, name := kinds.SplitKey(key)
	err := c.objects.Delete(ctx, kinds.WorkloadEntry, namespace, name, versionOf(text))
	if sdk.CodeOf(err) == sdk.StoreNotFound {
		return nil
	}
	return err
}

func versionOf(text []byte) string {
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	_ = json.Unmarshal(text, &o) // it was read before
	return o.Metadata.ResourceVersion
}

// report writes the condition of an entry's health; other conditions stay.
func (c *controller) report(ctx context.Context, text []byte, word string) error {
	o, err := decode(text)
	if err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	condition := map[string]any{"type": healthy, "status": status(word), "lastProbeTime": now, "lastTransitionTime": now}
	if word != "" {
		condition["message"] = word
	}
	conditions := []any{condition}
	all, _ := o.within("status")["conditions"].([]any)
	for _, each := range all {
		if of, ok := each.(map[string]any); !ok || of["type"] != healthy {
			conditions = append(conditions, each)
		}
	}
	o.within("status")["conditions"] = conditions
	if text, err = json.Marshal(o); err != nil {
		return err
	}
	_, err = c.objects.UpdateStatus(ctx, kinds.WorkloadEntry, text)
	return err
}
