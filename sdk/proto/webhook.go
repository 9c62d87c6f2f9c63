package proto

import "strings"

// Webhook begins the methods (of Ready and of Call) that are requests of HTTP at the core's
// webhook port; a path follows.
const Webhook = "POST "

// Answers reports whether a method that a plugin offers is the one that is called: the same or, of
// webhooks, a path above it.
func Answers(offered, method string) bool {
	if !strings.HasPrefix(method, Webhook) {
		return offered == method
	}
	path, _, _ := strings.Cut(method, "?")
	return path == offered || strings.HasPrefix(path, offered+"/") && strings.HasPrefix(offered, Webhook+"/")
}
