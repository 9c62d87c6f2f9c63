// Command controller-count is a controller: whenever services change it logs how many there are.
package main

import (
	"context"

	"github.com/coxswain-mesh/coxswain/sdk"
)

func main() { sdk.Serve(plugin()) }

func plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name: "count", Version: "1", Reads: []string{"services"},
		New: sdk.WithoutConfig(func() (sdk.Controller, error) { return sdk.ControllerFunc(run), nil }),
	}
}

func run(ctx context.Context, out sdk.Publisher) error {
	for {
		s, newer := out.State()
		out.Log(sdk.Info, "services", "count", s.Table("services").Len())
		select {
		case <-newer:
		case <-ctx.Done():
			return nil
		}
	}
}
