//go:build !wasip1

package sdk

import pb "github.com/coxswain-mesh/coxswain/sdk/proto"

// kindOf names what a message is.
func kindOf(m *pb.FromPlugin) string {
	switch {
	case m.Rows != nil:
		return "Rows"
	case m.Bodies != nil:
		return "Bodies"
	case m.Part != nil:
		return "Part"
	case m.Change != nil:
		return "Change"
	case m.Place != nil:
		return "Place"
	case m.View != nil:
		return "View"
	case m.Done != nil:
		return "Done"
	case m.Caller != nil:
		return "Caller"
	case m.Patched != nil:
		return "Patched"
	case m.Because != nil:
		return "Because"
	case m.Answer != nil:
		return "Answer"
	case m.Stored != nil:
		return "Stored"
	case m.Called != nil:
		return "Called"
	}
	return "another"
}
