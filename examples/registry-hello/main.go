// Command registry-hello is the smallest registry: one service with one endpoint.
package main

import (
	"context"

	"github.com/coxswain-mesh/coxswain/sdk"
)

func main() {
	sdk.Serve(sdk.Plugin{
		Name: "hello", Version: "1", Publishes: []string{"services", "endpoints"},
		Registry: func([]byte) (sdk.Registry, error) { return sdk.RegistryFunc(run), nil },
	})
}

func run(ctx context.Context, out sdk.Publisher) error {
	s := &sdk.Service{Host: "hello.example.com", Namespace: "default", Ports: []*sdk.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}}
	e := &sdk.Endpoint{Host: s.Host, Namespace: s.Namespace, PortName: "http", ServicePort: 80, Address: "127.0.0.1", Port: 8080}
	if err := out.Update("services", []*sdk.Row{sdk.ServiceRow(s)}, nil); err != nil {
		return err
	}
	if err := out.Update("endpoints", []*sdk.Row{sdk.EndpointRow(e)}, nil); err != nil {
		return err
	}
	return out.Synced()
}
