// Package inject sends the same reviews of pods to a living istiod's webhook and to ours, and
// compares what the pods become: with the templates and values of Istio's own chart, and with our
// own templates in the place of these.
//
// settings_test.go has what both are told, pods_test.go makes pods of workloads as Kubernetes'
// controllers do, live_test.go asks and compares, pace_test.go asks about so many a second,
// judged_test.go compares whether objects are let pass or refused. dies_test.go asks an injector
// that is killed, hangs and is swapped.
package inject
