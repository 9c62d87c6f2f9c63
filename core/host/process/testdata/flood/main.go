// Command flood is a registry that publishes 200 MB as fast as it can.
package main

import (
	"context"
	"fmt"

	"github.com/coxswain-mesh/coxswain/sdk"
)

func main() {
	sdk.Serve(sdk.RegistryPlugin{
		Name: "flood", Reads: []string{"big"}, Publishes: []string{"big"},
		New: sdk.WithoutConfig(func() (sdk.Registry, error) { return sdk.RegistryFunc(run), nil }),
	})
}

func run(ctx context.Context, out sdk.Publisher) error {
	for i := range 400 {
		if err := out.Update("big", []*sdk.Row{{Key: fmt.Sprint(i), Payload: make([]byte, 500_000)}}, nil); err != nil {
			return err
		}
	}
	return out.Synced()
}
