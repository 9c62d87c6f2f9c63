package sdk

import (
	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Sample is a figure that a plugin reports of itself.
type Sample = pb.Sample

// measurer is what Publishers and Outputs of this package are, too.
type measurer interface {
	measure(samples []*Sample)
}

// Measure reports figures of the plugin by its Publisher or Output: the core shows each on /metrics
// as plugin_NAME with the label plugin. One takes the place of the one before with its name and
// labels. Names are made of a-z, 0-9 and _; a Counter is a total, and its name ends in _total by
// custom. A plugin may have 200, with six labels each; what is more or malformed is left out, and
// counted in coxswain_plugin_unknown_messages_total. The error says that out is neither.
func Measure(out any, samples ...*Sample) error {
	m, ok := out.(measurer)
	if !ok {
		return text.Error("figures are reported by a Publisher or an Output of this package")
	}
	m.measure(samples)
	return nil
}

func (p *derived) measure(all []*Sample) {
	p.say(p.ctx, &pb.FromPlugin{Measure: &pb.Measure{Samples: all}})
}
func (o *output) measure(all []*Sample) {
	o.g.say(o.ctx, &pb.FromPlugin{Measure: &pb.Measure{Samples: all}})
}
