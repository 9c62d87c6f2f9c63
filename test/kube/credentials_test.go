package kube_test

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const grant = `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: edge, namespace: certs}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: edge}]
  to: [{group: "", kind: Secret, name: web}]`

// TestGrants: a Secret of another namespace is served once a ReferenceGrant allows it, whose
// definition may come later, and that one alone. What was served stays when the grant goes.
func TestGrants(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, documents(kube.Definitions(t), edge, "{apiVersion: v1, kind: Namespace, metadata: {name: certs}}"))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	http, https, otherHTTP, otherHTTPS := wait.Port(t), wait.Port(t), wait.Port(t), wait.Port(t)
	of := func(account, secret string, http, https int) string {
		return strings.ReplaceAll(edgeGateway(account, http, https), "credentialName: web", "credentialName: kubernetes-gateway://certs/"+secret)
	}
	c.Apply(t, documents(of("gw", "web", http, https), of("poor", "other", otherHTTP, otherHTTPS)))
	s := newSecured(t, secretSet, "--kubeconfig", c.Kubeconfig)
	in := func(text string) string { return strings.ReplaceAll(text, "namespace: edge", "namespace: certs") }
	first, second := s.served(t, "first"), s.served(t, "second")
	c.Apply(t, documents(in(first.secret("web")), in(first.secret("other")), first.clients()))
	s.gateway(t, "gw")
	s.gateway(t, "poor")
	plainly(t, http)
	plainly(t, otherHTTP)
	s.faulty(t, "edge/gw", "where no ReferenceGrant lets Gateways of edge have Secret certs/web")

	c.Apply(t, kube.GatewayAPI(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, grant)
	first.shown(t, https)
	s.faulty(t, "edge/poor", "where no ReferenceGrant lets Gateways of edge have Secret certs/other")
	if err := first.ask(otherHTTPS); err == nil {
		t.Error("a Secret that no grant names is served")
	}
	c.Apply(t, in(second.secret("web")))
	second.shown(t, https)
	c.Kubectl(t, "delete", "referencegrant", "edge", "-n", "certs")
	s.faulty(t, "edge/gw", "where no ReferenceGrant")
	c.Apply(t, in(first.secret("web")))
	second.shown(t, https)
	c.Apply(t, grant)
	first.shown(t, https)
}

const remoteSecrets = `
  - {name: clusters, kind: registry, builtin: registry/clusters}
  - {name: remote-secrets, kind: config, builtin: config/secrets, forEach: {table: clusters}, start: onDemand, onLoss: apply,
     config: {cluster: {row: id}, remote: {row: from}, hash: {row: hash}}}`

// TestSecretsOfClusters: a proxy of another cluster gets its own cluster's Secret, or else the
// first one's, if its own cluster lets its account have it.
func TestSecretsOfClusters(t *testing.T) {
	t.Parallel()
	c, other := kube.Start(t), kube.Start(t)
	http, https, poorHTTP, poorHTTPS := wait.Port(t), wait.Port(t), wait.Port(t), wait.Port(t)
	c.Apply(t, documents(kube.Definitions(t), edge, system))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(edgeGateway("gw", http, https), edgeGateway("poor", poorHTTP, poorHTTPS), secret("east", "east", other.Remote(t, ""))))
	// There it is poor that may.
	other.Apply(t, strings.ReplaceAll(edge, "subjects: [{kind: ServiceAccount, name: gw", "subjects: [{kind: ServiceAccount, name: poor"))
	s := newSecured(t, secretSet+remoteSecrets, "--kubeconfig", c.Kubeconfig)
	first, second, third := s.served(t, "first"), s.served(t, "second"), s.served(t, "third")
	c.Apply(t, documents(first.secret("web"), first.clients()))
	s.gateway(t, "gw", "--metadata", "CLUSTER_ID=east")
	s.gateway(t, "poor", "--metadata", "CLUSTER_ID=east")
	plainly(t, http)
	s.faulty(t, "edge/gw", "the service account edge/gw may not list secrets")
	first.shown(t, poorHTTPS) // theirs has none
	other.Apply(t, second.secret("web"))
	second.shown(t, poorHTTPS)
	c.Apply(t, third.secret("web"))
	other.Down()
	second.shown(t, poorHTTPS)
	other.Up(t)
	other.Kubectl(t, "delete", "secret", "web", "-n", "edge")
	third.shown(t, poorHTTPS)
	if err := first.ask(https); err == nil {
		t.Error("an account is served by its rights in another cluster")
	}
}
