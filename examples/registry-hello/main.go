// Command registry-hello is the smallest registry: one service with one endpoint.
package main

import (
	"context"

	"github.com/coxswain-mesh/coxswain/sdk"
)

func main() { sdk.Serve(plugin()) }

func plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name: "hello", Version: "1", Publishes: []string{"services", "endpoints"},
		New: sdk.WithoutConfig(func() (sdk.Registry, error) { return sdk.RegistryFunc(run), nil }),
	}
}

func run(_ context.Context, out sdk.Publisher) error {
	s := &sdk.Service{Host: "hello.example.com", Namespace: "default", Ports: []*sdk.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}}
	e := &sdk.Endpoint{Host: s.Host, Namespace: s.Namespace, PortName: "http", ServicePort: 80, Address: "127.0.0.1", Port: 8080}
	return sdk.NewList(out).Set([]*sdk.Service{s}, []*sdk.Endpoint{e})
}
