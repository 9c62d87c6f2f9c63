// Package process is the carrier between the core and a plugin that is a process: a bidirectional
// gRPC stream under the handshake of hashicorp/go-plugin. The core's side is started by
// core/host/process, the plugin's by sdk.Serve.
package process
