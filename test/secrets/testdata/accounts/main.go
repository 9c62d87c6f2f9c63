// Command accounts publishes what is in a file as a row of the table example.com/Account, and says
// that its rows are secrets; as `accounts reader` it is a plugin that reads the table and says
// nothing of it, and publishes a row of example.com/Holder for each.
package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const accounts, holders = "example.com/Account", "example.com/Holder"

func main() {
	if len(os.Args) > 1 {
		sdk.Serve(sdk.DeriverPlugin{
			Name: "holders", Version: "1", Reads: []string{accounts}, Publishes: []string{holders},
			New: sdk.WithoutConfig(func() (sdk.Deriver, error) { return sdk.DeriverFunc(derive), nil }),
		})
		return
	}
	sdk.Serve(sdk.ConfigSourcePlugin{
		Name: "accounts", Version: "1", Publishes: []string{accounts}, Secrets: []string{accounts},
		New: sdk.WithRawConfig(nil, func(config []byte) (sdk.ConfigSource, error) {
			s := &source{}
			return s, json.Unmarshal(config, s)
		}),
	})
}

func derive(_ context.Context, change *state.Change, out sdk.Publisher) error {
	for _, key := range change.Keys[accounts] {
		if err := out.Update(holders, []*sdk.Row{{Key: key, Payload: []byte(`{}`)}}, nil); err != nil {
			return err
		}
	}
	return nil
}

type source struct{ File string }

// Run publishes the file whenever it has changed.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	before := ""
	for ctx.Err() == nil {
		text, err := os.ReadFile(s.File)
		if err != nil {
			return err
		}
		if now := string(text); now != before {
			row := &sdk.Row{Key: "shop/account", Payload: text, Annotations: map[string]string{"applied": now}}
			if err := out.Update(accounts, []*sdk.Row{row}, nil); err != nil {
				return err
			}
			if before == "" {
				if err := out.Synced(); err != nil {
					return err
				}
			}
			before = now
		}
		_ = sdk.Sleep(ctx, 20*time.Millisecond)
	}
	return nil
}
