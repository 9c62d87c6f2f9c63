// Package render makes of a pod one that has a proxy beside it, as istiod's injector does: by
// templates, which are laid over the pod, and by what is done to every pod (probes, metrics, the
// order of containers).
//
// config.go reads what ConfigMap istio-sidecar-injector holds; required.go decides who gets a
// proxy; template.go runs templates of text, builtin.go those of our own; render.go lays them over;
// probes.go, metrics.go and order.go do the rest; change.go says what has changed.
package render
