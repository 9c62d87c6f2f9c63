package route

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// perPercent makes millionths of percent.
const perPercent = 10000

func (b *builder) mirror(action *routev3.RouteAction) {
	if b.in.Mirror != nil {
		b.mirrorTo(action, b.in.Mirror, b.mirrorShare())
	}
	for _, m := range b.in.Mirrors {
		b.mirrorTo(action, m.Destination, share(m.Percentage))
	}
}

func (b *builder) mirrorTo(action *routev3.RouteAction, d *networking.Destination, part *typev3.FractionalPercent) {
	if part == nil || d == nil {
		return
	}
	action.RequestMirrorPolicies = append(action.RequestMirrorPolicies, &routev3.RouteAction_RequestMirrorPolicy{
		Cluster:                       b.cluster(d).String(),
		RuntimeFraction:               &core.RuntimeFractionalPercent{DefaultValue: part},
		TraceSampled:                  wrapperspb.Bool(false),
		DisableShadowHostSuffixAppend: true,
	})
}

// mirrorShare is how much of the requests the single mirror gets; nil where nothing. The older
// field counts where the newer is absent.
func (b *builder) mirrorShare() *typev3.FractionalPercent {
	if b.in.MirrorPercentage == nil && b.in.MirrorPercent != nil { // still served
		n := b.in.MirrorPercent.Value // still served
		if n == 0 {
			return nil
		}
		return &typev3.FractionalPercent{Numerator: n}
	}
	return share(b.in.MirrorPercentage)
}

// share is everything where nothing was said, and nil where zero was.
func share(p *networking.Percent) *typev3.FractionalPercent {
	if p == nil {
		return &typev3.FractionalPercent{Numerator: 100}
	}
	if p.Value <= 0 {
		return nil
	}
	return millionth(p)
}

func millionth(p *networking.Percent) *typev3.FractionalPercent {
	return &typev3.FractionalPercent{Numerator: uint32(p.Value * perPercent), Denominator: typev3.FractionalPercent_MILLION}
}
