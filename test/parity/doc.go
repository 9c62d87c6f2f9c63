// Package parity compares the control plane with a living istiod: both run beside each other on one Kubernetes API server, the same proxies ask both, and
// the answers are compared field by field. `make parity-live` runs it.
//
// A state is a folder:
//
//	objects/    manifests, applied in order of their names by server-side apply, their status too
//	edits/      optional: more manifests, one after the other; NAME.delete.yaml names objects to delete. After each both are asked again
//	case.yaml   a title, and the proxies that ask, with their xDS nodes
//
// Each state has a cluster of its own: all that another one left is wiped. The control plane runs the set for a cluster without its guards: a state may take away all
// at once. There is no kubelet and no controller: pods, nodes and slices are manifests.
package parity
