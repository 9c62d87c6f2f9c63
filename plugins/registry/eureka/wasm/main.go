// Command wasm is registry/eureka as a module:
//
//	GOOS=wasip1 GOARCH=wasm go build -ldflags='-s -w' -o registry-eureka.wasm ./plugins/registry/eureka/wasm
//
// Its calls to Eureka are those that the entry's allow.http grants. Built for anything else it is
// registry/eureka as a process of its own.
package main

import (
	"github.com/coxswain-mesh/coxswain/plugins/registry/eureka"
	"github.com/coxswain-mesh/coxswain/sdk"
)

func main() { sdk.Serve(eureka.Plugin()) }
