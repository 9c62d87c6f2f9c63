package caller

import (
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Credentials are what a caller showed. They are secrets: nothing of them is logged.
type Credentials struct {
	// Certificates are DER, leaf first, and verified.
	Certificates [][]byte
	// Revoked is why the certificate that was shown is not among them; empty: it is, or there was
	// none.
	Revoked string
	// Headers by their lower-case names.
	Headers       map[string]string
	RemoteAddress string
}

// MaxCredentials is how many bytes of credentials travel to a plugin.
const MaxCredentials = 256 << 10

// CommonHeaders are those that each authenticator gets that doesn't say which of them it wants: a
// token; the cluster whose API server can check it; and what a trusted proxy says of a certificate.
func CommonHeaders() []string {
	return []string{"authorization", "clusterid", "x-forwarded-client-cert"}
}

// CommonOf are those of CommonHeaders that a plugin is shown, which may not have said Ready yet:
// nil.
func CommonOf(r *pb.Ready) []string {
	if r == nil || r.Headers == nil {
		return CommonHeaders()
	}
	return slices.DeleteFunc(CommonHeaders(), func(name string) bool { return !slices.Contains(r.Headers.Names, name) })
}

// message is the credentials as a question has them, with headers of its own.
func (c Credentials) message(headers map[string]string) *pb.Authenticate {
	return &pb.Authenticate{Certificates: c.Certificates, Headers: headers, RemoteAddress: c.RemoteAddress}
}
