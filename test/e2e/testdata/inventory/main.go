// Command inventory is a registry that has a service for each line of a file, and logs a secret of
// its config.
package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
)

type inventory struct{ File, Token string }

func main() {
	sdk.Serve(sdk.RegistryPlugin{
		Name: "inventory", Version: "1", Publishes: []string{"services", "endpoints"},
		New: sdk.WithRawConfig(nil, func(config []byte) (sdk.Registry, error) {
			i := &inventory{}
			return i, json.Unmarshal(config, i)
		}),
	})
}

func (i *inventory) Run(ctx context.Context, out sdk.Publisher) error {
	out.Log(sdk.Info, "the token is "+i.Token, "token", i.Token)
	list := sdk.NewList(out)
	for ctx.Err() == nil {
		text, err := os.ReadFile(i.File)
		if err != nil {
			return err
		}
		var services []*sdk.Service
		var endpoints []*sdk.Endpoint
		for _, host := range strings.Fields(string(text)) {
			services = append(services, &sdk.Service{Host: host, Namespace: "default", Ports: []*sdk.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}})
			endpoints = append(endpoints, &sdk.Endpoint{Host: host, Namespace: "default", PortName: "http", ServicePort: 80, Address: "127.0.0.1", Port: 8080})
		}
		if err := list.Set(services, endpoints); err != nil {
			return err
		}
		_ = sdk.Sleep(ctx, 20*time.Millisecond)
	}
	return nil
}
