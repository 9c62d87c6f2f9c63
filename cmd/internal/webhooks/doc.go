// Package webhooks says which webhooks an API server is to ask of a control plane: the
// configurations of a revision and of its tags (configurations.go), how tags are set, listed and
// removed (tags.go), and how all of it is taken away (remove.go). `coxswain webhooks`, `tag` and
// `uninstall` are made of it, and so is the Helm chart (deploy/chart/files).
//
// Names of configurations, tags and labels are Istio's where tools look for them; names of single
// webhooks are our own: by these it is known whose a configuration is, and others' stay untouched.
package webhooks
