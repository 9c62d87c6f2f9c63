package kube_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// usagesOfSidecars are those that controller/ca and istiod ask for.
var usagesOfSidecars = []certificatesv1.KeyUsage{
	certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth,
	certificatesv1.UsageClientAuth,
}

// requested makes a CertificateSigningRequest for a workload, approves it, and returns what the
// signer has made; the error is why there is nothing.
func requested(t *testing.T, c *kube.Cluster, signer string, usages ...certificatesv1.KeyUsage) (*x509.Certificate, error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr := named(t, webIdentity)
	der, err := x509.CreateCertificateRequest(rand.Reader, &csr, key)
	if err != nil {
		t.Fatal(err)
	}
	requests := c.Client(t).CertificatesV1().CertificateSigningRequests()
	made, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "own-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer, Usages: usages,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	made.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	if _, err := requests.UpdateApproval(t.Context(), made.Name, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var out *x509.Certificate
	var failed error
	wait.For(t, signer+" signs, or says why not", func() error {
		now, err := requests.Get(t.Context(), made.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, is := range now.Status.Conditions {
			if is.Type == certificatesv1.CertificateFailed {
				failed = fmt.Errorf("%s: %s", is.Reason, is.Message)
				return nil
			}
		}
		block, _ := pem.Decode(now.Status.Certificate)
		if block == nil {
			return errors.New("nothing yet")
		}
		out, err = x509.ParseCertificate(block.Bytes)
		return err
	})
	return out, failed
}

// TestSignersOfKubernetes: kube-controller-manager's own signers sign nothing that sidecars can
// use: requests for legacy-unknown are not taken, and the others fail those of servers. So istiod
// starts with them and can't sign for anybody; Coxswain doesn't start, and says why.
func TestSignersOfKubernetes(t *testing.T) {
	need.All(t)
	t.Parallel()
	c := kube.Start(t)
	dir := t.TempDir()
	ca := newListed(t, dir)
	external := filepath.Join(dir, "etc/external-ca-cert")
	if err := os.MkdirAll(external, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(external, "root-cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.certificate.Raw})))
	c.Controllers(t, "--controllers", "certificatesigningrequest-signing-controller,certificatesigningrequest-approving-controller",
		"--cluster-signing-cert-file", filepath.Join(dir, "ca-cert.pem"), "--cluster-signing-key-file", filepath.Join(dir, "ca-key.pem"))
	c.Apply(t, documents(kube.Definitions(t), system, namespace, accountsOfShop))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")

	own, err := requested(t, c, certificatesv1.KubeAPIServerClientSignerName, certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth)
	if err != nil || own.CheckSignatureFrom(ca.certificate) != nil || own.URIs[0].String() != webIdentity || len(own.ExtKeyUsage) != 1 {
		t.Fatalf("the signer for clients signs for no client: %v, %v", err, own)
	}
	fails := map[string]string{
		"kubernetes.io/legacy-unknown":                      "the legacy signerName is not allowed via this API version",
		certificatesv1.KubeAPIServerClientSignerName:        "SignerValidationFailure",
		certificatesv1.KubeAPIServerClientKubeletSignerName: "SignerValidationFailure",
		certificatesv1.KubeletServingSignerName:             "SignerValidationFailure",
	}
	for signer, words := range fails {
		if made, err := requested(t, c, signer, usagesOfSidecars...); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, %v", signer, made, err)
		}
	}

	const legacy = "kubernetes.io/legacy-unknown"
	secure := wait.Address(t)
	kube.StartIstiodIn(t, c, dir, []string{"--secureGRPCAddr", secure}, "ENABLE_CA_SERVER=true",
		"PILOT_CERT_PROVIDER=istiod", "EXTERNAL_CA=ISTIOD_RA_KUBERNETES_API", "K8S_SIGNER="+legacy)
	web := wanted{token: tokenOf(t, c, "web", ofIstio), request: named(t, webIdentity)}
	if _, _, err := web.ask(t, dial(t, secure, portName, root(t, c, "shop", anything))); ends(err, codes.Internal, fails[legacy]) != nil {
		t.Errorf("istiod: %v", ends(err, codes.Internal, fails[legacy]))
	}
	for signer := range fails {
		out, err := exec.CommandContext(t.Context(), program, "discovery", "--registries", "Kubernetes",
			"--kubeconfig", c.Kubeconfig, "--externalCA", "ISTIOD_RA_KUBERNETES_API", "--k8sSigner", signer,
			"--grpcAddr", wait.Address(t), "--secureGRPCAddr", wait.Address(t), "--httpAddr", wait.Address(t),
			"--monitoringAddr", wait.Address(t)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "external.signer: \""+signer+"\" is of Kubernetes itself") {
			t.Errorf("Coxswain with %s: %v\n%s", signer, err, out)
		}
	}
}
