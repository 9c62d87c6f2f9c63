// Package parity compares the control plane with a living istiod: both run beside each other on one
// Kubernetes API server, the same proxies ask both, and the answers are compared field by field.
// `make parity-live` runs it.
//
// A state is a folder:
//
//	objects/    manifests, applied in order of their names by server-side apply, their status too
//	edits/      optional: more manifests, one after the other; NAME.delete.yaml names objects to delete. After each both are asked again
//	start.yaml  optional: what is added to istiod's environment (istiod: [NAME=VALUE]), the flags that mean the same
//	            here (coxswain: [--flag=value]), flags of both (flags), and entries for the set of plugins (plugins): one of a known name adds to its config;
//	            gatewayAPI: true, for the definitions of the Gateway API (experimental: true, of its experimental channel),
//	            and statuses: true, so that what both write is compared, too
//	case.yaml   a title, and the proxies that ask, with their xDS nodes
//	clusters/   optional: other clusters of the mesh, a folder of each, by its id, with objects/ and edits/ of its own
//
// Of each of the other clusters the first one has a Secret, as `istioctl create-remote-secret`
// makes them: one that the harness writes, or, where manifests of the first cluster have
// ${kubeconfig ID} (which stands for the kubeconfig as `data` of a Secret has it), what they say.
// Files of one name in several clusters are applied together.
//
// With statuses: true the statuses that both write are compared, of objects of the Gateway API and
// of Ingresses, and the Deployments, Services and others that both make for Gateways. istiod writes
// into the state's cluster; another Coxswain, which writes and deploys, has a second cluster with
// the same objects. What they wrote is compared once both have written the status of a marker, a
// Gateway that is changed last. ${certificate}, ${key} and ${root} in manifests stand for a
// certificate, its key (base64, for a Secret) and who signed it (text, for a ConfigMap).
//
// Each state has a cluster of its own: all that another one left is wiped, but for definitions of
// the Gateway API that it wants, too. The control plane runs the set for a cluster without its
// guards: a state may take away all at once. There is no kubelet and no controller: pods, nodes and
// slices are manifests.
//
// TestMeshes makes random meshes instead: a world of namespaces, Services and pods that stays
// (random_world_test.go), and objects of Istio's kinds, settings of the mesh and proxies that come
// and go in it. Fields are those of the messages' descriptors (random_fields_test.go), set to what
// they may well hold (random_values_test.go); what istiod's own webhook or the API server refuses
// is left out and counted. Two control planes on one cluster see all meshes of a run one after the
// other. The tool that compares stays (asker.go.in is built into it) and asks for all proxies at
// once. The first difference of each sort is shrunk, objects first, then fields, to a state folder
// that `make parity-live STATES=…` runs again.
//
// Meshes, and random histories (histories_test.go), are by turns of Istio's kinds, of the Gateway
// API with Ingresses (random_gateways_test.go), and of both; -kinds has others. Where there are
// Gateways, statuses and what is deployed are compared as in states, with a mirror that has the
// same objects. Objects are made one after the other, by name, so that the older one is the same
// one in both clusters; in meshes they are made anew where they would change, in histories they are
// changed.
package parity
