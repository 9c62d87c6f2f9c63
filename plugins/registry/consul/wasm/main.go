// Command wasm is registry/consul as a module:
//
//	GOOS=wasip1 GOARCH=wasm go build -ldflags='-s -w' -o registry-consul.wasm ./plugins/registry/consul/wasm
//
// Its calls to Consul are those that the entry's allow.http grants. Built for anything else it is
// registry/consul as a process of its own.
package main

import (
	"github.com/coxswain-mesh/coxswain/plugins/registry/consul"
	"github.com/coxswain-mesh/coxswain/sdk"
)

func main() { sdk.Serve(consul.Plugin()) }
