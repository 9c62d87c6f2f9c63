package envoyfilter

import (
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extension"
)

// patience is how long a listener may wait for the configuration of a filter that nobody has.
const patience = 2 * time.Second

// bound keeps a listener, and with it the policies in it, from waiting for the configuration of a
// filter that a patch has proxies ask us for, and that nobody has: Envoy would wait for 15 s, or
// for ever. Once the time is over it lets nothing pass, or does what the patch's default_config
// says.
func (s *Set) bound(filter string, d *core.ExtensionConfigSource) {
	source := d.GetConfigSource()
	if source.GetAds() == nil || strings.HasPrefix(filter, extension.Prefix) || s.Extension(filter) != nil {
		return
	}
	if t := source.InitialFetchTimeout; t == nil || t.AsDuration() == 0 || t.AsDuration() > patience {
		source.InitialFetchTimeout = durationpb.New(patience)
	}
}
