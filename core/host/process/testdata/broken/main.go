// Command broken is a registry that fails as its config says.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

func main() {
	sdk.Serve(sdk.RegistryPlugin{
		Name: "broken", Publishes: []string{"services"},
		New: sdk.WithRawConfig(nil, func(config []byte) (sdk.Registry, error) { return broken(config), nil }),
	})
}

type broken string

func (b broken) Run(context.Context, sdk.Publisher) error {
	for range 5000 {
		fmt.Println("a plugin may say what it likes on standard output")
	}
	fmt.Fprintln(os.Stderr, "these are its last words")
	switch b {
	case `"panics"`:
		panic("out of cheese")
	case `"crashes"`:
		go panic("in a goroutine")
		select {}
	case `"crosses"`:
		return session.Crossed("wasm.memory", "it grew")
	}
	return errors.New("the source is gone")
}
