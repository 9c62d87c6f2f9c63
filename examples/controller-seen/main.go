// Command controller-seen is a controller that writes: it says in the status of each ServiceEntry
// that it has seen it. Its entry in plugins.yaml needs `allow: {store:
// [networking.istio.io/ServiceEntry]}`, and there must be a config source that takes writes of
// them.
package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const (
	table     = "networking.istio.io/ServiceEntry"
	condition = "example.com/Seen"
	again     = 2 * time.Second
)

func main() { sdk.Serve(plugin()) }

func plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name: "seen", Version: "1", Reads: []string{table},
		New: sdk.WithoutConfig(func() (sdk.Controller, error) { return sdk.ControllerFunc(run), nil }),
	}
}

// run looks at each entry that comes. One whose object nobody has is looked at again when its row
// is another one: it may come from a source that takes writes now. What fails otherwise is tried
// again: somebody else may have changed the object, or the store may be away.
func run(ctx context.Context, out sdk.Publisher) error {
	objects, seen, missing := sdk.ObjectsOf(out), map[string]bool{}, map[string]*pb.Row{}
	for {
		s, newer := out.State()
		failed := false
		for key, row := range s.Table(table).All() {
			if seen[key] || missing[key] == row {
				continue
			}
			err := see(ctx, objects, key)
			switch {
			case err == nil:
				seen[key] = true
			case sdk.CodeOf(err) == sdk.StoreNotFound:
				missing[key] = row
			default:
				out.Log(sdk.Warn, "a status was not written; it is tried again", "entry", key, "error", err)
				failed = true
			}
		}
		var retry <-chan time.Time
		if failed {
			retry = time.After(again)
		}
		select {
		case <-newer:
		case <-retry:
		case <-ctx.Done():
			return nil
		}
	}
}

// see reads an object, adds the condition to what its status has, and gives it back as it was
// otherwise.
func see(ctx context.Context, objects sdk.Objects, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	text, err := objects.Get(ctx, table, namespace, name)
	if err != nil {
		return err
	}
	// What is not looked into stays as it is.
	var object, status map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	if old, ok := object["status"]; ok {
		if err := json.Unmarshal(old, &status); err != nil {
			return err
		}
	}
	if status == nil {
		status = map[string]json.RawMessage{}
	}
	var conditions []map[string]any
	if old, ok := status["conditions"]; ok {
		if err := json.Unmarshal(old, &conditions); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(conditions, func(c map[string]any) bool { return c["type"] == condition }) {
		return nil
	}
	if status["conditions"], err = json.Marshal(append(conditions, map[string]any{"type": condition, "status": "True"})); err != nil {
		return err
	}
	if object["status"], err = json.Marshal(status); err != nil {
		return err
	}
	if text, err = json.Marshal(object); err != nil {
		return err
	}
	_, err = objects.UpdateStatus(ctx, table, text)
	return err
}
