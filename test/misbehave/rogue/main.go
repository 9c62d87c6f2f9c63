// Command rogue is a plugin that breaks a rule: as a process the one that its argument names, as a
// module the one that its file is called after.
package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

func main() {
	rogueName := name()
	if f := beforeSession[rogueName]; f != nil {
		f()
	}
	if p, ok := withSDK[rogueName]; ok {
		sdk.Serve(p)
	}
	err := serve(func(_ context.Context, c session.Carrier) error {
		r := &rogue{c}
		if _, err := r.recv(); err != nil { // Hello
			return err
		}
		return inSession[rogueName](r)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// beforeSession are rogues that never come as far as a session.
var beforeSession = map[string]func(){
	"exits": func() {
		fmt.Fprintln(os.Stderr, "the sky falls")
		os.Exit(3)
	},
	"garbage":   func() { fmt.Println("\x00\xff<html>"); forever() },
	"handshake": func() { fmt.Println("1|77|unix|/nowhere|grpc"); forever() },
	"mute":      func() { forever() },
}

// withSDK are rogues in the SDK's clothes.
var withSDK = map[string]sdk.Declaration{
	"loops": derives("loops", func() {
		for spun := new(atomic.Uint64); ; {
			spun.Add(1)
		}
	}),
	"panics": derives("panics", nil),
}
