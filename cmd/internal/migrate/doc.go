// Package migrate reads how an istiod is deployed, and says how Coxswain is to be told the same:
// read.go takes the objects in, made.go and its neighbours turn them into settings, plugins.yaml,
// rights and webhooks (each thing that istiod is told has an outcome), print.go writes them down.
// running.go reads how a Deployment runs Coxswain itself, for who checks an upgrade.
//
// Nothing is guessed in silence: what has no counterpart is named, with what to do. Secrets are not
// read, and values of variables that are not known to be istiod's are never repeated.
package migrate
