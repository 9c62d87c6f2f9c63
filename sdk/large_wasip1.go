package sdk

import pb "github.com/coxswain-mesh/coxswain/sdk/proto"

// kindOf names what a message is, where a module is not to be larger for it.
func kindOf(*pb.FromPlugin) string { return "a module's" }
