package istio

import (
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/serving"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// judged is the engine as it runs: rows of Istio's kinds are held to the rules that count for
// files, whoever published them.
func judged(c Config) *serving.Engine { return engineOf(c, judge) }

// judge says what refuses a row; what is no message is left to whoever reads it.
func judge(table string, row *pb.Row) error {
	kind, ok := kinds.Lookup(table)
	if !ok {
		return nil
	}
	spec := kind.New()
	if proto.Unmarshal(row.Payload, spec) != nil {
		return nil
	}
	return rules.Row(row, spec)
}
