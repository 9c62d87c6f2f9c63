package istio

import (
	"fmt"
	"math/rand/v2"

	securityv1 "istio.io/api/security/v1beta1"
	typev1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// What the cases have too little of: tokens, whose keys come inline, from a table that another
// plugin fills, or not at all; and ages.

const someKeys, otherKeys = `{"keys":[{"kty":"oct","kid":"1","k":"YQ"}]}`, `{"keys":[{"kty":"oct","kid":"2","k":"Yg"}]}`

// tokens are RequestAuthentications and key sets.
func tokens() map[string][]*pb.Row {
	out := map[string][]*pb.Row{}
	for i, rule := range []*securityv1.JWTRule{
		{Issuer: "inline", Jwks: someKeys},
		{Issuer: "fetched", JwksUri: "https://keys.example/a"},
		{Issuer: "other", JwksUri: "https://keys.example/b", ForwardOriginalToken: true, FromHeaders: []*securityv1.JWTHeader{{Name: "x-token", Prefix: "t "}}},
		{Issuer: "https://issuer.example"},
	} {
		for _, namespace := range []string{"default", "istio-system", "prod"} {
			spec := &securityv1.RequestAuthentication{JwtRules: []*securityv1.JWTRule{rule}}
			if namespace == "prod" {
				spec.Selector = &typev1.WorkloadSelector{MatchLabels: map[string]string{"app": "web"}}
			}
			r := resource(fmt.Sprintf("%s/tokens-%d", namespace, i%3), spec)
			r.Source = fmt.Sprintf("tokens %d", i)
			out[config.RequestAuthentications] = append(out[config.RequestAuthentications], r)
		}
	}
	for _, key := range []string{"https://keys.example/a", "https://keys.example/b", "https://issuer.example"} {
		for _, keys := range []string{someKeys, otherKeys} {
			out[config.KeySets] = append(out[config.KeySets], &pb.Row{Key: key, Payload: []byte(keys), Source: "keys"})
		}
	}
	return out
}

// ofAge is a row of another age, so that ages go against names.
func ofAge(r *rand.Rand, row *pb.Row) *pb.Row {
	out := *row
	out.Created = int64(r.IntN(4))
	return &out
}

// unreadable is a row that nobody can read: what was there under its key stays as it was.
func unreadable(row *pb.Row) *pb.Row {
	out := *row
	out.Payload, out.Source = []byte{0xff}, "unreadable"
	return &out
}

func isUnreadable(row *pb.Row) bool { return len(row.Payload) == 1 && row.Payload[0] == 0xff }
