//go:build !wasip1

package process

import (
	"github.com/hashicorp/go-plugin"

	"github.com/coxswain-mesh/coxswain/sdk/session"
)

const (
	// Name is what the session is called in go-plugin's set of plugins.
	Name = "session"
	// LifelineEnv says, if it is set, that the plugin inherited a pipe whose end means that the
	// core is gone; its value is the descriptor's number.
	LifelineEnv = "COXSWAIN_LIFELINE"
	// CoreEnv is the number of the core's process: the plugin takes connections from that one
	// alone.
	CoreEnv = "COXSWAIN_CORE"
	// LifelineFD is the number that the core uses.
	LifelineFD = 3

	cookieKey   = "COXSWAIN_PLUGIN"
	cookieValue = "0c1f4a7be25d"
)

// Handshake is what both ends show each other; the cookie tells a plugin that it was started by a
// core, it is no secret.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{ProtocolVersion: session.Version, MagicCookieKey: cookieKey, MagicCookieValue: cookieValue}
}
