package kube

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Token has the API server issue a token of a service account for an audience (empty: for itself),
// bound to a pod of the account's namespace if one is named.
func (c *Cluster) Token(t testing.TB, namespace, account, audience, pod string) string {
	t.Helper()
	core := c.Client(t).CoreV1()
	request := &authenticationv1.TokenRequest{}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	if pod != "" {
		is, err := core.Pods(namespace).Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod, UID: is.UID}
	}
	issued, err := core.ServiceAccounts(namespace).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return issued.Status.Token
}

// Sign signs a token of a service account for istio-ca with the API server's own key, with other
// claims in the place of some: names and values, in turn.
func (c *Cluster) Sign(t testing.TB, namespace, account string, others ...any) string {
	t.Helper()
	is, err := c.Client(t).CoreV1().ServiceAccounts(namespace).Get(t.Context(), account, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	claims := map[string]any{
		"iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:" + namespace + ":" + account, "aud": []string{"istio-ca"},
		"iat": now, "nbf": now, "exp": now + 3600,
		"kubernetes.io": map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": account, "uid": is.UID}},
	}
	for i := 0; i < len(others); i += 2 {
		claims[others[i].(string)] = others[i+1]
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "accounts.pem"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(with).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
