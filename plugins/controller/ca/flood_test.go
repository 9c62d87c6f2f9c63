package ca

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	security "istio.io/api/security/v1alpha1"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// A call that is far larger than any request that may be signed is refused before it is read.
func TestLargeCallsAreNotRead(t *testing.T) {
	t.Chdir(t.TempDir())
	h := started(t, `{}`)
	called := h.Call(&pb.Call{
		Method: security.IstioCertificateService_CreateCertificate_FullMethodName, Identities: []string{web},
		Request: []byte(strings.Repeat("\xff", maxCall+1)),
	})
	if called.Code != uint32(codes.InvalidArgument) || !strings.Contains(called.Message, "65536 are taken") {
		t.Errorf("code %d: %s", called.Code, called.Message)
	}
	signed(t, h, &pb.Call{Identities: []string{web}, Request: encoded(t, &security.IstioCertificateRequest{})})
}
