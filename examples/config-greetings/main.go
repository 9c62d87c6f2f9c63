// Command config-greetings is a config source: each greeting of its config, by name, is a row of
// the table example.com/Greeting.
package main

import (
	"context"
	"encoding/json"

	"github.com/coxswain-mesh/coxswain/sdk"
)

type greetings map[string]string

func main() { sdk.Serve(plugin()) }

func plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name: "greetings", Version: "1", Publishes: []string{"example.com/Greeting"},
		New: sdk.WithConfig(nil, func(given greetings) (sdk.ConfigSource, error) { return given, nil }),
	}
}

// Run publishes everything once: nothing will change.
func (g greetings) Run(_ context.Context, out sdk.Publisher) error {
	var rows []*sdk.Row
	for name, text := range g {
		payload, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			return err
		}
		rows = append(rows, &sdk.Row{Key: "default/" + name, Source: "plugins.yaml", Payload: payload})
	}
	if err := out.Update("example.com/Greeting", rows, nil); err != nil {
		return err
	}
	return out.Synced()
}
