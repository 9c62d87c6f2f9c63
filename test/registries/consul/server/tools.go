//go:build tools

// Package server lists the program whose version go.mod pins: Consul, the last one under the
// Mozilla Public License. Nothing imports it.
package server

import _ "github.com/hashicorp/consul"
