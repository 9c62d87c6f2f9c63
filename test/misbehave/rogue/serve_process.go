//go:build !wasip1

package main

import (
	"context"
	"os"

	"github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

func name() string { return os.Args[1] }

func serve(f func(context.Context, session.Carrier) error) error { return process.Serve(f) }
