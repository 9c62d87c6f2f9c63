package sdk

import (
	"context"

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

// samplesAtOnce is how many samples a message has at most.
const samplesAtOnce = 100

func (ps *pluginSession) measured(ctx context.Context, samples []*Sample) {
	for len(samples) > 0 {
		n := min(len(samples), samplesAtOnce)
		ps.say(ctx, &pb.FromPlugin{Measure: &pb.Measure{Samples: samples[:n]}})
		samples = samples[n:]
	}
}

func (p *publisher) measure(samples []*Sample) { p.source.measured(p.ctx, samples) }
func (p *derived) measure(samples []*Sample)   { p.measured(p.ctx, samples) }
func (o *output) measure(samples []*Sample)    { o.g.measured(o.ctx, samples) }
