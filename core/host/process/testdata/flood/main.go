// Command flood is a registry that publishes 200 MB as fast as it can.
package main

import (
	"context"
	"fmt"

	"github.com/coxswain-mesh/coxswain/sdk"
)

func main() {
	sdk.Serve(sdk.Plugin{
		Name: "flood", Reads: []string{"big"}, Publishes: []string{"big"},
		Kind: sdk.RegistryKind(func([]byte) (sdk.Registry, error) { return sdk.RegistryFunc(run), nil }),
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
